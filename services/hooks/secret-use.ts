import type { Database } from '../../db/client.ts'
import { saveSecretUses, type SecretUse } from '../../db/hooks/providers.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'

/** A use, and since when the provider's secrets are what they are: a change makes its next use news. */
export interface NotedUse extends SecretUse {
  readonly since: Date | null
}

/** Notes which secret each provider's deliveries are sent with, without making a delivery wait. */
export interface SecretUses {
  record(use: NotedUse): void
  close(): Promise<void>
}

const FLUSH_MS = 1_000
/** The same secret again is written down so often, so that its time is right to the minute. */
const SAME_MS = 60_000

export function createSecretUses(db: Database, clock: Clock, log: Log): SecretUses {
  const latest = new Map<string, NotedUse>()
  const written = new Map<string, NotedUse>()
  let flushing: Promise<void> = Promise.resolve()

  async function write(all: boolean): Promise<void> {
    const due = [...latest.values()].filter((use) => {
      const before = written.get(use.provider)
      if (before === undefined || before.secret !== use.secret) return true
      if (before.since?.getTime() !== use.since?.getTime()) return true
      const later = use.at.getTime() - before.at.getTime()
      return all ? later > 0 : later >= SAME_MS
    })
    if (due.length === 0) return
    try {
      await saveSecretUses(db, due)
      for (const use of due) written.set(use.provider, use)
    } catch (error) {
      // They are still the latest: the next run tries again.
      log.warn('uses of secrets not saved', { error: messageOf(error) })
    }
  }

  function flush(all: boolean): Promise<void> {
    flushing = flushing.then(() => write(all))
    return flushing
  }

  const stop = clock.every(FLUSH_MS, () => void flush(false))

  return {
    record: (use) => void latest.set(use.provider, use),
    async close() {
      stop()
      await flush(true)
    },
  }
}
