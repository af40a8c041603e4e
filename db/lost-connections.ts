import { pause } from '../kernel/time.ts'
import { QueryError } from './errors.ts'

/** Has the server end connections that were lost. */
export interface ConnectionReaper {
  end(name: string): void
  close(): void
}

const RETRY_MS = 500
/** Of more, the newest are kept: while a database is away, each attempt to connect may count as a loss. */
const MAX_NAMES = 1_000

/**
 * A silently dropped connection keeps its locks until TCP times out. The time-outs of PostgreSQL end
 * one that waits for its next statement, but none that was lost between the messages of a statement. So
 * the server is asked to end lost connections, by name and on another connection, until that succeeds.
 * A server that refuses would refuse again: `onRefused` is called the first time.
 */
export function createReaper(
  endOnServer: (names: readonly string[]) => Promise<void>,
  onRefused: (error: QueryError) => void,
): ConnectionReaper {
  const lost = new Set<string>()
  const closing = new AbortController()
  let running = false
  let reported = false

  function giveUp(error: QueryError): void {
    lost.clear()
    if (!reported) onRefused(error)
    reported = true
  }

  async function run(): Promise<void> {
    while (lost.size > 0 && !closing.signal.aborted) {
      const names = [...lost]
      try {
        await endOnServer(names)
        for (const name of names) lost.delete(name)
      } catch (error) {
        if (error instanceof QueryError) giveUp(error)
        // The database is away. When it is back, the lost connections may still be there.
        else await pause(RETRY_MS, closing.signal)
      }
    }
    running = false
  }

  return {
    end(name) {
      lost.add(name)
      for (const oldest of lost) {
        if (lost.size <= MAX_NAMES) break
        lost.delete(oldest)
      }
      if (running) return
      running = true
      void run()
    },
    close: () => closing.abort(),
  }
}
