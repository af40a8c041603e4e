import { lstat, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from '../../db/client.ts'
import { pruneOps, type Pruned } from '../../db/ops/retention.ts'
import { codeOf, type Log } from '../../kernel/log.ts'
import { type Clock, openSteadyTime } from '../../kernel/time.ts'
import { PRUNE_BATCH, startPruning, type InBatches, type Pruning } from '../../kernel/repeat.ts'
import type { InventorySource } from './inventory/inventory.ts'
import { cooldownOf } from './tools/operations.ts'

export interface RetentionOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** For how many days things are kept; 0 for ever. */
  readonly keptDays: () => { readonly sessions: number; readonly lines: number }
  /** Its cooldowns count actions, which are kept for as long as that. */
  readonly inventory: InventorySource
}

const DAY_MS = 24 * 3_600_000
/** A session or an alert takes longer to remove than a line: others refer to it, or it has a large payload. */
const BATCH: Readonly<Record<Pruned, number>> = {
  ...{ lines: PRUNE_BATCH, events: PRUNE_BATCH, actions: PRUNE_BATCH },
  ...{ sessions: 50, alerts: 50 },
}
const SESSION_FILE = /^session-\d+\.ndjson$/

/**
 * Removes old sessions with their output, events, actions and alerts: what runs is not old, and a
 * session is as old as the last one of its escalation chain.
 */
export function startRetention(options: RetentionOptions, resultsDir: string): Pruning {
  const { db, clock, log, keptDays, inventory } = options
  const steadyNow = openSteadyTime(clock)

  async function run(inBatches: InBatches): Promise<void> {
    const days = keptDays()
    const now = steadyNow().getTime()
    const removed = { lines: 0, sessions: 0, events: 0, alerts: 0, actions: 0, files: 0 }
    /** Another instance prunes: it does all of it. */
    let isOthers = false
    async function prune(what: Pruned, keptMs: number): Promise<void> {
      // A cooldown may reach back before any date.
      const before = new Date(Math.max(0, now - keptMs))
      removed[what] = await inBatches(async () => {
        const batch = isOthers ? undefined : await pruneOps(db, what, before, BATCH[what])
        isOthers = batch === undefined
        return batch ?? 0
      })
    }

    // Output goes with its session at the latest, and before it: a session is removed without lines.
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
    const { lines, sessions, events, alerts, actions, files } = removed
    if (lines + sessions + events + alerts + actions + files === 0) return
    log.info('pruned', { lines, sessions, events, alerts, actions, files })
  }

  return startPruning(clock, log, run)
}

/** How far back the inventory's operations count actions, in milliseconds. */
async function longestCooldown(inventory: InventorySource): Promise<number> {
  let longest = 0
  for (const { operations = [] } of (await inventory.current()).services) {
    for (const operation of operations) {
      longest = Math.max(longest, cooldownOf(operation).window_s * 1_000)
    }
  }
  return longest
}

/** Removes the files of sessions that were last written before a time; gives how many. */
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
      // Another instance may have the same folder.
      if (codeOf(error) !== 'ENOENT') throw error
    }
  }
  return removed
}

/** Empty for a folder that no session has made yet. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}
