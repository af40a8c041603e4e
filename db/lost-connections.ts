import { pause } from '../kernel/time.ts'
import { QueryError } from './errors.ts'

/** Has the server end connections that were lost on the way. */
export interface Ender {
  end(name: string): void
  close(): void
}

const AGAIN_MS = 500
/** The newest of more are kept: while a database is away, each attempt to reach it may count as a loss. */
const MOST = 1_000

/**
 * A connection that is lost without a word stands at the server for as long as TCP believes in it, with the locks
 * of its transaction: the time-outs of PostgreSQL end one that waits for its next statement, but none that was
 * lost between the messages of one. So lost connections are named to the server, on another one, until
 * that has gone well. A server that refuses it would refuse it again: `onRefused` is told the first time.
 */
export function createEnder(
  endOnServer: (names: readonly string[]) => Promise<void>,
  onRefused: (error: QueryError) => void,
): Ender {
  const lost = new Set<string>()
  const closing = new AbortController()
  let running = false
  let told = false

  function giveUp(error: QueryError): void {
    lost.clear()
    if (!told) onRefused(error)
    told = true
  }

  async function run(): Promise<void> {
    while (lost.size > 0 && !closing.signal.aborted) {
      const names = [...lost]
      try {
        await endOnServer(names)
        for (const name of names) lost.delete(name)
      } catch (error) {
        if (error instanceof QueryError) giveUp(error)
        // The database is away, which all others say; with it back, the lost ones are still there.
        else await pause(AGAIN_MS, closing.signal)
      }
    }
    running = false
  }

  return {
    end(name) {
      lost.add(name)
      for (const oldest of lost) {
        if (lost.size <= MOST) break
        lost.delete(oldest)
      }
      if (running) return
      running = true
      void run()
    },
    close: () => closing.abort(),
  }
}
