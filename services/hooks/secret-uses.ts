import type { Database } from '../../db/client.ts'
import { saveSecretUses, type SecretUse } from '../../db/hooks/providers.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'

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
  let closing = false

  async function write(): Promise<void> {
    const due = [...latest.values()].filter((use) => {
      const before = written.get(use.provider)
      if (before === undefined || before.secret !== use.secret) return true
      if (before.since?.getTime() !== use.since?.getTime()) return true
      const later = use.at.getTime() - before.at.getTime()
      return closing ? later > 0 : later >= SAME_MS
    })
    if (due.length === 0) return
    await saveSecretUses(db, due)
    for (const use of due) written.set(use.provider, use)
  }

  // What can't be saved is still the latest: the next run tries again.
  const flushes = repeat(clock, FLUSH_MS, write, {
    fails: (error) => log.warn('uses of secrets not saved', { error: messageOf(error) }),
    works: () => log.info('uses of secrets are saved again'),
  })

  return {
    record: (use) => void latest.set(use.provider, use),
    async close() {
      closing = true
      await flushes.now()
      await flushes.stop()
    },
  }
}
