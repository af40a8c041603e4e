import { lstat, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../../db/client.ts'
import { noticeQueries } from '../../db/ops/notices.ts'
import { retentionQueries as q } from '../../db/ops/retention.ts'
import { codeOf, type Log } from '../../kernel/log.ts'
import { type Clock, openSteadyTime } from '../../kernel/time.ts'
import { PRUNE_BATCH, startPruning, type InBatches, type Pruning } from '../../kernel/repeat.ts'
import type { InventorySource } from './inventory.ts'
import { cooldownOf } from './operations.ts'

export interface RetentionOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** How many days to keep things; 0 for ever. */
  readonly keptDays: () => { readonly sessions: number; readonly lines: number }
  /** Actions are kept for as long as its cooldowns count them. */
  readonly inventory: InventorySource
}

const DAY_MS = 24 * 3_600_000
/**
 * Sessions and alerts come in small batches: other rows refer to a session, an alert has a large
 * payload.
 */
const PRUNED = {
  lines: { prune: q.pruneLines, limit: PRUNE_BATCH },
  sessions: { prune: q.pruneSessions, limit: 50 },
  events: { prune: q.pruneEvents, limit: PRUNE_BATCH },
  alerts: { prune: q.pruneAlerts, limit: 50 },
  actions: { prune: q.pruneActions, limit: PRUNE_BATCH },
} as const
type Pruned = keyof typeof PRUNED
/** As in the query `claimNotice`: older ones are not sent any more. */
const MAX_NOTICE_AGE_MS = DAY_MS
const SESSION_FILE = /^session-\d+\.ndjson$/

/**
 * Removes old sessions with their output, events, actions and alerts. The age of a session is that
 * of the last one in its escalation chain; one that runs has none.
 */
export function startRetention(options: RetentionOptions, resultsDir: string): Pruning {
  const { db, clock, log, keptDays, inventory } = options
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches): Promise<void> {
    const days = keptDays()
    const now = steadyNow().getTime()
    const removed = { lines: 0, sessions: 0, events: 0, alerts: 0, actions: 0, files: 0 }
    // Another instance may be pruning: then it removes everything.
    let isOthers = false
    async function prune(what: Pruned, keptMs: number): Promise<void> {
      // A cooldown may reach back before 1970.
      const before = new Date(Math.max(0, now - keptMs))
      removed[what] = await inBatches(async () => {
        const batch = isOthers ? undefined : await pruneBatch(db, what, before)
        isOthers = batch === undefined
        return batch ?? 0
      })
    }

    // Lines are removed before their sessions, and kept no longer than these.
    const [linesDays] = [days.lines, days.sessions]
      .filter((kept) => kept > 0)
      .toSorted((a, b) => a - b)
    if (linesDays !== undefined) {
      await prune('lines', linesDays * DAY_MS)
      removed.files = await pruneFiles(resultsDir, now - linesDays * DAY_MS)
    }
    if (days.sessions > 0) {
      const keptMs = days.sessions * DAY_MS
      await prune('sessions', keptMs)
      await prune('events', keptMs)
      await prune('alerts', keptMs)
      await prune('actions', Math.max(keptMs, await longestCooldown(inventory)))
    }
    await noticeQueries.pruneNotices(db, { before: new Date(now - MAX_NOTICE_AGE_MS) })
    const { lines, sessions, events, alerts, actions, files } = removed
    if (lines + sessions + events + alerts + actions + files === 0) return
    log.info('pruned', { lines, sessions, events, alerts, actions, files })
  }

  return startPruning(clock, log, run)
}

/** How many rows were removed; undefined while another instance prunes. */
function pruneBatch(db: Database, what: Pruned, before: Date): Promise<number | undefined> {
  const { prune, limit } = PRUNED[what]
  return db.transaction(async (tx) => {
    const { taken } = await q.tryPruningLock(tx, {})
    return taken ? (await prune(tx, { before, limit })).removed : undefined
  })
}

/** The longest cooldown of the inventory's operations, in milliseconds. */
async function longestCooldown(inventory: InventorySource): Promise<number> {
  let longest = 0
  for (const { operations = [] } of (await inventory.current()).services) {
    for (const operation of operations) {
      longest = Math.max(longest, cooldownOf(operation).window_s * 1_000)
    }
  }
  return longest
}

/** Removes files of sessions that were last written before a time. Gives their number. */
async function pruneFiles(folder: string, before: number): Promise<number> {
  let removed = 0
  for (const name of await namesIn(folder)) {
    if (!SESSION_FILE.test(name)) continue
    const file = join(folder, name)
    try {
      const found = await lstat(file)
      if (!found.isFile() || found.mtimeMs >= before) continue
      await unlink(file)
      removed++
    } catch (error) {
      // Another instance may use the same folder.
      if (codeOf(error) !== 'ENOENT') throw error
    }
  }
  return removed
}

/** Empty if no session has created the folder yet. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}
