import { setImmediate as nextTurn } from 'node:timers/promises'

/** The work of a key that is under way, and the one that has not begun, which can be joined. */
interface Turn<T> {
  running?: Promise<T> | undefined
  next?: Promise<T> | undefined
}

/** Runs the work of a key, or joins the one that begins next; see `createShared`. */
export type Shared<T> = (key: string, work: () => Promise<T>) => Promise<T>

/**
 * Lets those who ask for the same at the same time share one answer. Of each key one work runs at a
 * time; who asks meanwhile gets the result, or the error, of the next one, never of one that began
 * before the question: an answer is as fresh as if it had been asked for alone. Nothing is kept
 * once nobody waits, so there are never more keys than questions.
 */
export function createShared<T>(): Shared<T> {
  const turns = new Map<string, Turn<T>>()

  async function run(key: string, turn: Turn<T>, work: () => Promise<T>): Promise<T> {
    await turn.running?.catch(() => undefined)
    // Questions that have arrived by now are read first, so that they are part of this.
    await nextTurn()
    turn.running = turn.next
    turn.next = undefined
    try {
      return await work()
    } finally {
      if (turn.next === undefined) turns.delete(key)
    }
  }

  return (key, work) => {
    const turn = turns.get(key) ?? {}
    turns.set(key, turn)
    turn.next ??= run(key, turn, work)
    return turn.next
  }
}
