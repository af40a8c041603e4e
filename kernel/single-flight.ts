import { setImmediate as nextTurn } from 'node:timers/promises'

/** The work of a key that is under way, and the one that has not begun, which can be joined. */
interface Turn<T> {
  running?: Promise<T> | undefined
  next?: Promise<T> | undefined
}

/** An answer that is given again while nothing is known to have changed. */
interface Kept<T> {
  readonly answer: Promise<T>
  readonly version: number
  readonly since: number
}

/** By what an answer is known to be old. */
interface Freshness {
  /** Changes when no answer from before may be given any more. */
  readonly version: () => number
  /** Milliseconds since some moment, as a clock counts them. */
  readonly elapsed: () => number
}

/** Gives the answer of a key, made by `work` where there is none that is fresh; see `createShared`. */
export type Shared<T> = (key: string, work: () => Promise<T>) => Promise<T>

/** What the version does not tell, such as another process's change, is seen after so long at most. */
const KEPT_MS = 100
const MOST_KEPT = 16

/**
 * Lets those who ask for the same share one answer: never one that was begun before the version changed,
 * and none older than a tenth of a second. Of each key one work runs at a time; who asks meanwhile, when
 * no answer is fresh, gets the result, or the error, of the next one.
 */
export function createShared<T>({ version, elapsed }: Freshness): Shared<T> {
  const turns = new Map<string, Turn<T>>()
  const answers = new Map<string, Kept<T>>()

  async function run(key: string, turn: Turn<T>, work: () => Promise<T>): Promise<T> {
    await turn.running?.catch(() => undefined)
    // Questions that have arrived by now are read first, so that they are part of this.
    await nextTurn()
    turn.running = turn.next
    turn.next = undefined
    const begun = { version: version(), since: elapsed() }
    try {
      const result = await work()
      keep(key, { ...begun, answer: Promise.resolve(result) })
      return result
    } finally {
      if (turn.next === undefined) turns.delete(key)
    }
  }

  function keep(key: string, kept: Kept<T>): void {
    answers.delete(key)
    answers.set(key, kept)
    const [oldest] = answers.keys()
    if (answers.size > MOST_KEPT && oldest !== undefined) answers.delete(oldest)
  }

  return (key, work) => {
    const kept = answers.get(key)
    if (kept?.version === version() && elapsed() - kept.since < KEPT_MS) return kept.answer
    const turn = turns.get(key) ?? {}
    turns.set(key, turn)
    turn.next ??= run(key, turn, work)
    return turn.next
  }
}
