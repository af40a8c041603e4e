import { existsSync } from 'node:fs'
import { lstat, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Executor } from '../../db/client.ts'
import { noticeQueries } from '../../db/notices.ts'
import { retentionQueries as q } from '../../db/ops/retention.ts'
import { openSteadyTime, PRUNE_BATCH, startPruning, type InBatches } from '../../kernel/repeat.ts'
import type { NotifyOptions } from '../notices/sender.ts'
import { readTargets } from '../notices/targets.ts'
import type { InventorySource } from './watch/inventory/inventory.ts'
import { cooldownOf } from './agent/operations/operations.ts'

type Basis = Pick<NotifyOptions, 'db' | 'clock' | 'log' | 'notifyUrls' | 'secretBox'>

export interface RetentionOptions extends Basis {
  /** How many days to keep things; 0 for ever. */
  keptDays: () => { sessions: number; lines: number }
  /** Actions are kept for as long as its cooldowns count them. */
  inventory: InventorySource
}

const DAY_MS = 24 * 3_600_000
/** Other rows refer to a session, and an alert has a large payload. */
const SMALL_BATCH = 50
/** What pages show of checks: each result, hours, days with the changes of state. */
const RESULTS_MS = 2 * DAY_MS
const HOURS_MS = 100 * DAY_MS
const CHECK_DAYS_MS = 800 * DAY_MS
type Prune = typeof q.pruneLines
const SESSION_FILE = /^session-\d+\.ndjson$/

/**
 * Removes old sessions with their output, events, actions and alerts. The age of a session is that
 * of the last one in its escalation chain. A running session has no age.
 */
export function startRetention(options: RetentionOptions, folder: string) {
  const { db, clock, log, keptDays, inventory, notifyUrls, secretBox } = options
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches) {
    const now = steadyNow().getTime()
    // Another instance may be pruning: then it removes everything.
    let isOthers = false
    async function prune(query: Prune, keptMs: number, limit = PRUNE_BATCH) {
      if (isOthers || keptMs === Infinity) return 0
      // A cooldown may reach back before 1970.
      const before = new Date(Math.max(0, now - keptMs))
      const batch = async (tx: Executor): Promise<number> => {
        const { taken } = await q.tryPruningLock(tx, {})
        isOthers = !taken
        return taken ? (await query(tx, { before, limit })).removed : 0
      }
      return inBatches(() => db.transaction(batch))
    }

    const days = keptDays()
    const keptMs = daysMs(days.sessions)
    // Lines are removed before their sessions, and kept no longer than these.
    const linesMs = Math.min(keptMs, daysMs(days.lines))
    const lines = await prune(q.pruneLines, linesMs)
    const files = await pruneFiles(folder, now - linesMs)
    const sessions = await prune(q.pruneSessions, keptMs, SMALL_BATCH)
    const events = await prune(q.pruneEvents, keptMs)
    const alerts = await prune(q.pruneAlerts, keptMs, SMALL_BATCH)
    const cooldownMs = await longestCooldown(inventory)
    const actions = await prune(q.pruneActions, Math.max(keptMs, cooldownMs))
    const approvals = await prune(q.pruneApprovals, keptMs)
    const checks = await pruneChecks(prune)
    const targets = await readTargets(db, notifyUrls(), secretBox)
    const names = targets.map(({ name }) => name)
    await noticeQueries.forgetTargets(db, { names })
    const removed = { lines, sessions, events, alerts, actions, approvals, checks, files }
    if (Object.values(removed).every((count) => count === 0)) return
    log.info('pruned', removed)
  }

  return startPruning(clock, log, run)
}

/** Removes the history of checks, and mutes and silences that are over. Gives the number of rows. */
async function pruneChecks(
  prune: (query: Prune, keptMs: number) => Promise<number>,
): Promise<number> {
  let removed = 0
  for (const [query, keptMs] of [
    [q.pruneCheckResults, RESULTS_MS],
    [q.pruneCheckHours, HOURS_MS],
    [q.pruneCheckDays, CHECK_DAYS_MS],
    [q.pruneCheckPeriods, CHECK_DAYS_MS],
    [q.pruneChecks, HOURS_MS],
    [q.pruneMutes, HOURS_MS],
    [q.pruneSilences, HOURS_MS],
  ] as const) {
    removed += await prune(query, keptMs)
  }
  return removed
}

/** Days of a setting in milliseconds: 0 is for ever. */
function daysMs(days: number): number {
  return days === 0 ? Infinity : days * DAY_MS
}

/** The longest cooldown of the inventory's operations, in milliseconds. */
async function longestCooldown(inventory: InventorySource) {
  const { services } = await inventory.current()
  const all = services.flatMap(({ operations = [] }) => operations)
  return Math.max(0, ...all.map((one) => cooldownOf(one).window_s)) * 1_000
}

/** Removes files of sessions that were last written before a time. Gives their number. */
async function pruneFiles(folder: string, before: number) {
  let removed = 0
  // The first session creates the folder.
  const names = existsSync(folder) ? await readdir(folder) : []
  for (const name of names.filter((one) => SESSION_FILE.test(one))) {
    const file = join(folder, name)
    // Another instance may use the same folder, and remove the file now.
    const found = await lstat(file).catch(() => undefined)
    if (found === undefined || !found.isFile() || found.mtimeMs >= before) continue
    await rm(file, { force: true })
    removed++
  }
  return removed
}
