import { existsSync } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { eventQueries } from '../../db/ops/events.ts'
import { retentionQueries as q } from '../../db/ops/retention.ts'
import { openSteadyTime } from '../../kernel/time.ts'
import { PRUNE_BATCH, startPruning, type InBatches, type Pruning } from '../../kernel/repeat.ts'
import type { NotifyOptions } from './events.ts'
import type { InventorySource } from './inventory.ts'
import { cooldownOf } from './operations.ts'

export interface RetentionOptions extends Pick<NotifyOptions, 'db' | 'clock' | 'log'> {
  /** How many days to keep things; 0 for ever. */
  readonly keptDays: () => { readonly sessions: number; readonly lines: number }
  /** Actions are kept for as long as its cooldowns count them. */
  readonly inventory: InventorySource
}

const DAY_MS = 24 * 3_600_000
/** Other rows refer to a session, and an alert has a large payload. */
const SMALL_BATCH = 50
/** As in the query `claimNotice`: older ones are not sent any more. */
const MAX_NOTICE_AGE_MS = DAY_MS
type Prune = typeof q.pruneLines
const SESSION_FILE = /^session-\d+\.ndjson$/

/**
 * Removes old sessions with their output, events, actions and alerts. The age of a session is that
 * of the last one in its escalation chain; one that runs has none.
 */
export function startRetention(options: RetentionOptions, resultsDir: string): Pruning {
  const { db, clock, log, keptDays, inventory } = options
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches): Promise<void> {
    const now = steadyNow().getTime()
    // Another instance may be pruning: then it removes everything.
    let isOthers = false
    async function prune(query: Prune, keptMs: number, limit = PRUNE_BATCH): Promise<number> {
      if (keptMs === Infinity) return 0
      // A cooldown may reach back before 1970.
      const before = new Date(Math.max(0, now - keptMs))
      return inBatches(async () => {
        if (isOthers) return 0
        return db.transaction(async (tx) => {
          isOthers = !(await q.tryPruningLock(tx, {})).taken
          return isOthers ? 0 : (await query(tx, { before, limit })).removed
        })
      })
    }

    const days = keptDays()
    const keptMs = days.sessions === 0 ? Infinity : days.sessions * DAY_MS
    // Lines are removed before their sessions, and kept no longer than these.
    const linesMs = Math.min(keptMs, days.lines === 0 ? Infinity : days.lines * DAY_MS)
    const lines = await prune(q.pruneLines, linesMs)
    const files = await pruneFiles(resultsDir, now - linesMs)
    const sessions = await prune(q.pruneSessions, keptMs, SMALL_BATCH)
    const events = await prune(q.pruneEvents, keptMs)
    const alerts = await prune(q.pruneAlerts, keptMs, SMALL_BATCH)
    const actionsMs = Math.max(keptMs, await longestCooldown(inventory))
    const actions = await prune(q.pruneActions, actionsMs)
    await eventQueries.pruneNotices(db, { before: new Date(now - MAX_NOTICE_AGE_MS) })
    if (lines + sessions + events + alerts + actions + files === 0) return
    log.info('pruned', { lines, sessions, events, alerts, actions, files })
  }

  return startPruning(clock, log, run)
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
  // The first session creates the folder.
  const names = existsSync(folder) ? await readdir(folder) : []
  for (const name of names) {
    if (!SESSION_FILE.test(name)) continue
    const file = join(folder, name)
    // Another instance may use the same folder, and remove the file now.
    const found = await lstat(file).catch(() => undefined)
    if (found === undefined || !found.isFile() || found.mtimeMs >= before) continue
    await rm(file, { force: true })
    removed++
  }
  return removed
}
