/** A run that is under way, and the one after it, which those share who asked meanwhile. */
interface Turn<T> {
  readonly running: Promise<T>
  next?: Promise<T>
}

/** Runs the work of a key, or joins the run that begins next; see `createShared`. */
export type Shared<T> = (key: string, work: () => Promise<T>) => Promise<T>

/**
 * Lets those who ask for the same at the same time share one answer. Of each key one work runs at a
 * time; who asks meanwhile gets the result, or the error, of the next one, never of one that began
 * before the question: an answer is as fresh as if it had been asked for alone. Nothing is kept
 * once nobody waits, so there are never more keys than questions.
 */
export function createShared<T>(): Shared<T> {
  const turns = new Map<string, Turn<T>>()

  function begin(key: string, work: () => Promise<T>): Promise<T> {
    const turn: Turn<T> = { running: work() }
    turns.set(key, turn)
    const over = (): void => {
      if (turn.next === undefined) turns.delete(key)
    }
    turn.running.then(over, over)
    return turn.running
  }

  return (key, work) => {
    const turn = turns.get(key)
    if (turn === undefined) return begin(key, work)
    const start = (): Promise<T> => begin(key, work)
    turn.next ??= turn.running.then(start, start)
    return turn.next
  }
}
