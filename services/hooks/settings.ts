import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { Settings, settingsQueries as q } from '../../db/hooks/settings.ts'
import type { Log } from '../../kernel/log.ts'
import { PRUNE_BATCH, startPruning, type InBatches, type Pruning } from '../../kernel/repeat.ts'
import { openSteadyTime, type Clock } from '../../kernel/time.ts'
import { field, parsed } from '../../kernel/validate.ts'
import type { Forwarders } from './forward/forwarders.ts'
import { parseTarget, TARGET_FORM } from './outgoing.ts'
import type { Registry } from './registry.ts'
import { MAX_REJECTIONS } from './rejections.ts'

const { retention_max_age_days, retention_max_rows, sse_retry_ms } = Settings.properties

/** What `POST /settings` takes: an absent field keeps its value, an empty target is none. */
export const SettingsForm = Type.Object({
  retention_max_age_days: field(
    Type.Optional(retention_max_age_days),
    'must be a whole number of days from 0 (no limit) to 36500.',
  ),
  retention_max_rows: field(
    Type.Optional(retention_max_rows),
    'must be a whole number of events from 0 (no limit) to 2147483647.',
  ),
  sse_retry_ms: field(
    Type.Optional(sse_retry_ms),
    'must be a whole number of milliseconds from 250 to 3600000.',
  ),
  replay_default_target: parsed(
    Type.Optional(Type.Unsafe<string | null>({ type: 'string', format: 'uri' })),
    `must be ${TARGET_FORM}, or nothing.`,
    (given) => {
      const text = String(given).trim()
      if (text === '') return null
      return parseTarget(text) === undefined ? undefined : text
    },
  ),
})
export type SettingsForm = Type.Static<typeof SettingsForm>

/** Writes the given settings. Others keep their value, also those that another instance changes. */
export async function writeSettings(db: Database, given: SettingsForm): Promise<void> {
  await q.writeSettings(db, {
    retention_max_age_days: given.retention_max_age_days ?? null,
    retention_max_rows: given.retention_max_rows ?? null,
    sse_retry_ms: given.sse_retry_ms ?? null,
    replay_default_target: given.replay_default_target ?? null,
    sets_target: given.replay_default_target !== undefined,
  })
}

const DAY_MS = 24 * 3_600_000
const ACTIVITY_DAYS = 2
const FORWARDER_DAYS = 90

/**
 * Removes the events that the settings do not keep, old counters, and forwarders that have gone.
 */
export function startRetention(
  db: Database,
  registry: Registry,
  forwarders: Pick<Forwarders, 'names'>,
  clock: Clock,
  log: Log,
): Pruning {
  const steadyNow = openSteadyTime(clock)
  let first = true

  async function run(inBatches: InBatches): Promise<void> {
    const { retention_max_age_days, retention_max_rows } = registry.settings
    const now = steadyNow().getTime()
    // At the start nobody has reconnected yet: after a long pause every forwarder would seem gone.
    if (!first) {
      const before = new Date(now - FORWARDER_DAYS * DAY_MS)
      await q.pruneForwarders(db, { connected: forwarders.names, before, now: new Date(now) })
    }
    first = false
    const limit = PRUNE_BATCH
    let removed = 0
    if (retention_max_age_days > 0) {
      const before = new Date(now - retention_max_age_days * DAY_MS)
      removed += await inBatches(
        async () => (await q.pruneEventsByAge(db, { before, limit })).removed,
      )
    }
    if (retention_max_rows > 0) {
      const keep = retention_max_rows
      removed += await inBatches(
        async () => (await q.pruneEventsByCount(db, { keep, limit })).removed,
      )
    }
    await rejectionQueries.pruneRejections(db, { keep: MAX_REJECTIONS })
    const before = new Date(now - ACTIVITY_DAYS * DAY_MS)
    await q.pruneActivity(db, { before })
    await rejectionQueries.pruneRejectionMinutes(db, { before })
    if (removed > 0) log.info('pruned', { events: removed })
  }

  return startPruning(clock, log, run)
}
