import * as Type from '../../kernel/schema.ts'
import type { Database } from '../../db/client.ts'
import { destinationQueries } from '../../db/hooks/send/destinations.ts'
import { eventQueries } from '../../db/hooks/log/events.ts'
import { recoveryQueries } from '../../db/hooks/receive/recoveries.ts'
import { replayQueries } from '../../db/hooks/send/replays.ts'
import { rejectionQueries } from '../../db/hooks/receive/rejections.ts'
import { Settings, settingsQueries as q } from '../../db/hooks/settings.ts'
import {
  openSteadyTime,
  PRUNE_BATCH,
  repeat,
  startPruning,
  type InBatches,
  type Pruning,
} from '../../kernel/repeat.ts'
import { field, parsed } from '../../kernel/validate.ts'
import { changedNames, noteChange, type ChangeTools } from '../audit.ts'
import type { Forwarders } from './send/forwarders/forwarders.ts'
import { parseTarget, TARGET_FORM } from './send/replays/outgoing.ts'
import type { HooksParts, Registry } from './registry.ts'

const { retention_max_age_days, retention_max_rows, sse_retry_ms } = Settings.properties

/** What `POST /settings` takes. An absent field keeps its value; an empty target removes it. */
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

/** Changes settings; the line in the audit has the names of those that differ from before. */
export async function changeSettings(
  { db, actor }: ChangeTools,
  given: SettingsForm,
): Promise<void> {
  await db.transaction(async (tx) => {
    const before = await q.lockSettings(tx, {})
    await q.writeSettings(tx, { given })
    const names = changedNames(before, given)
    if (names.length === 0) return
    const note = {
      service: 'hooks',
      action: 'settings change',
      subject: names.join(', '),
    } as const
    await noteChange(tx, actor, note)
  })
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 3_600_000
/** A log that exceeds its limit by this part of it is pruned before the hour is over. */
const SURPLUS = 0.1
const ACTIVITY_DAYS = 2
/** How long retention keeps an event that an enabled destination has not received. */
const OWED_DAYS = 7
const FORWARDER_DAYS = 90
const RECOVERY_DAYS = 30
/** Events that one statement counts at most: ten million would take longer than one may. */
const COUNT_BATCH = 100_000

/**
 * Removes the events that the settings do not keep, old counters, old findings at senders, and
 * forwarders that have gone.
 */
export function startRetention(
  { db, clock, log }: HooksParts,
  registry: Registry,
  forwarders: Pick<Forwarders, 'names'>,
): Pruning {
  const steadyNow = openSteadyTime(clock)
  let first = true

  async function run(inBatches: InBatches): Promise<void> {
    const now = steadyNow().getTime()
    // At the start nobody has reconnected yet: after a long pause every forwarder would seem gone.
    if (!first) {
      const before = new Date(now - FORWARDER_DAYS * DAY_MS)
      await q.pruneForwarders(db, { connected: forwarders.names(), before, now: new Date(now) })
    }
    first = false
    const below = Math.min(await firstKept(db, registry.settings, now), await firstSpared(db, now))
    const gaps = new Map<string, Gap>()
    const removed = await inBatches(() => removeEvents(db, below, gaps))
    for (const [destination, { events, through }] of gaps) {
      log.warn('events removed before they were delivered', { destination, events, through })
    }
    const before = new Date(now - ACTIVITY_DAYS * DAY_MS)
    await q.pruneActivity(db, { before })
    await replayQueries.pruneReplayJobs(db, {})
    await rejectionQueries.pruneRejectionMinutes(db, { before })
    await recoveryQueries.pruneRecoveries(db, { before: new Date(now - RECOVERY_DAYS * DAY_MS) })
    if (removed > 0) log.info('pruned', { events: removed })
  }

  const pruning = startPruning(clock, log, run)
  const looks = repeat(clock, MINUTE_MS, 'size of the log', async () => {
    if (await hasOutgrown(db, registry.settings)) pruning.prune()
  })
  return {
    prune: pruning.prune,
    async close() {
      await looks.stop()
      await pruning.close()
    },
  }
}

/** A sender that floods must not fill the disk before the hour is over. */
async function hasOutgrown(db: Database, { retention_max_rows: keep }: Settings) {
  if (keep === 0) return false
  const { newest, pruned_through } = await eventQueries.streamBounds(db, { replayed: 0 })
  return newest - pruned_through > keep * (1 + SURPLUS)
}

/** Events that a destination will not get, and the highest of them. */
interface Gap {
  events: number
  through: number
}

/** Removes a batch of events; those that a destination has not received are added to its gap. */
async function removeEvents(db: Database, below: number, gaps: Map<string, Gap>): Promise<number> {
  return db.transaction(async (tx) => {
    const batch = { below, limit: PRUNE_BATCH }
    const owners = await destinationQueries.lockDestinations(tx, {})
    const given = owners.length === 0 ? [] : await destinationQueries.giveUpEvents(tx, batch)
    for (const { name, events, through } of given) {
      gaps.set(name, { events: events + (gaps.get(name)?.events ?? 0), through })
    }
    return (await q.pruneEvents(tx, batch)).removed
  })
}

/** The first event that is kept because a destination has not received it. */
async function firstSpared(db: Database, now: number): Promise<number> {
  const { id: owed } = await destinationQueries.firstOwed(db, {})
  if (owed === null) return Number.MAX_SAFE_INTEGER
  const since = new Date(now - OWED_DAYS * DAY_MS)
  return Math.max(owed, (await eventQueries.firstIdSince(db, { since })).id)
}

/** The id from which on the settings keep events. */
async function firstKept(
  db: Database,
  { retention_max_age_days, retention_max_rows }: Settings,
  now: number,
): Promise<number> {
  const since = new Date(now - retention_max_age_days * DAY_MS)
  const byAge =
    retention_max_age_days > 0 ? (await eventQueries.firstIdSince(db, { since })).id : 0
  const byCount = retention_max_rows > 0 ? await firstOfNewest(db, retention_max_rows) : 0
  return Math.max(byAge, byCount)
}

/** The first of the newest `keep` events; 0 when there are no more. */
async function firstOfNewest(db: Database, keep: number): Promise<number> {
  const { newest, pruned_through } = await eventQueries.streamBounds(db, { replayed: 0 })
  if (newest - pruned_through <= keep) return 0
  let first = newest + 1
  for (let left = keep; left > 0; left -= COUNT_BATCH) {
    const newer = Math.min(left, COUNT_BATCH) - 1
    const found = await q.findNewest(db, { before: first, newer })
    if (found === undefined) return 0
    first = found.id
  }
  return first
}
