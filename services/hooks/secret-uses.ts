import type { Database } from '../../db/client.ts'
import { providerQueries, type SecretUse } from '../../db/hooks/providers.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'

/** A use; `since` tells when the provider's secrets last changed: the first use after that is written at once. */
export interface RecordedUse extends SecretUse {
  readonly since: Date | null
}

/** Records which secret each provider's deliveries are sent with; no delivery waits for it. */
export interface SecretUses {
  record(use: RecordedUse): void
  close(): Promise<void>
}

const FLUSH_MS = 1_000
/** A further use of the same secret is written after this time, so that it is right to the minute. */
const SAME_MS = 60_000

export function createSecretUses(db: Database, clock: Clock, log: Log): SecretUses {
  const latest = new Map<string, RecordedUse>()
  const written = new Map<string, RecordedUse>()
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
    await providerQueries.saveSecretUses(db, { uses: due })
    for (const use of due) written.set(use.provider, use)
  }

  // What can't be saved stays in `latest`: the next run tries again.
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
