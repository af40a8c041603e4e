import {
  providerQueries as q,
  type Provider,
  type SecretName,
  type SecretUse,
} from '../../../../db/hooks/receive/providers.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import type { HooksParts } from '../../registry.ts'

/** Records which secret each provider's deliveries are sent with; no delivery waits for it. */
export interface SecretUses {
  /** Notes by which secret a delivery was accepted; a null one, of a delivery without, is not noted. */
  record(provider: Used, secret: SecretName | null, at: Date): void
  close(): Promise<void>
}

type Used = Pick<Provider, 'name' | 'rotated_at'>

const FLUSH_MS = 1_000

export function createSecretUses({ db, clock, log }: HooksParts): SecretUses {
  const latest = new Map<string, SecretUse>()

  /** What can't be saved stays in `latest`: the next run tries again. */
  async function write(): Promise<void> {
    const uses = [...latest.values()]
    if (uses.length === 0) return
    await q.saveSecretUses(db, { uses })
    for (const use of uses) if (latest.get(use.provider) === use) latest.delete(use.provider)
  }

  const reports = reportsTo(log, 'uses of secrets not saved', 'uses of secrets are saved again')
  const flushes = repeat(clock, FLUSH_MS, 'uses of secrets', write, reports)

  return {
    record({ name: provider, rotated_at }, secret, at) {
      if (secret !== null) latest.set(provider, { provider, secret, at, rotated_at })
    },
    async close() {
      await flushes.now()
      await flushes.stop()
    },
  }
}
