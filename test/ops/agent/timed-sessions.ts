import { randomBytes } from 'node:crypto'
import { eventQueries } from '../../../db/ops/events.ts'
import { sessionQueries as q } from '../../../db/ops/agent/sessions.ts'
import { holderOf, machineId } from '../../../kernel/processes/proc.ts'
import { openRunningConfig } from '../../../services/ops/config.ts'
import { createRedact } from '../../../services/ops/redact.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import type { Runner } from '../../../services/ops/agent/runners/runner.ts'
import { openSessions } from '../../../services/ops/agent/sessions/sessions.ts'
import { openSandbox } from '../../../services/ops/agent/tools/sandbox.ts'
import type { ToolOptions } from '../../../services/ops/agent/tools/tool.ts'
import { temporaryFolder, type Owner } from '../../helpers/owner.ts'
import { openTimed, type TimedOptions } from '../../helpers/timed.ts'
import { until } from '../../helpers/until.ts'

/** Who stops a session by hand. */
export const OPERATOR = { kind: 'operator' } as const

/** What any runner with tools is made of. */
export type RunnerParts = ToolOptions & {
  random: RandomBytes
  budgets: () => { session: undefined; day: undefined }
  maxTurns: () => number
  host: () => Promise<undefined>
}

/** Opens sessions in the test's own process, on PostgreSQL, by the runner that is made of these parts. */
export async function openTimedSessions(
  t: Owner,
  name: string,
  makeRunner: (parts: RunnerParts) => Runner,
  given: TimedOptions = {},
) {
  const timed = await openTimed(t, name, { runs: true, ...given })
  const { db, clock, log, later, query } = timed
  const folder = await temporaryFolder(t, 'ops')
  const models = { tier1_model: 'default', tier2_model: 'default', tier3_model: 'default' }
  const folders = { state_dir: folder, results_dir: folder, repos_dir: folder }
  const config = await openRunningConfig(db, clock, log, () => {
    return { ...models, ...folders, interval: 3_600, dry_run: false, max_tier: 3 }
  })
  const redact = createRedact(() => [])
  const runner = makeRunner({
    db,
    clock,
    log,
    redact,
    sandbox: openSandbox({ log, unsandboxed: () => false, hidden: () => [], explain: String }),
    inventory: { current: async () => ({ services: [] }), isOurs: () => false },
    runbooks: { current: async () => [] },
    dryRun: async () => false,
    budgets: () => ({ session: undefined, day: undefined }),
    maxTurns: () => 1_000,
    host: async () => undefined,
    random: randomBytes,
  })
  const sessions = await openSessions({
    db,
    clock,
    log,
    config,
    redact,
    resultsDir: folder,
    runner: () => runner,
    holder: holderOf(),
    machine: machineId(),
    random: randomBytes,
    patience: { firstMs: () => 60_000, idleMs: () => 180_000 },
  })
  t.teardown(async () => {
    await sessions.close()
    await config.close()
  })
  /** The time of another heartbeat than this one. */
  function heartbeat(before: number) {
    const text = `select extract(epoch from heartbeat_at)::float8 * 1000 as beat
      from ops.sessions where status = 'running'`
    return until(async () => {
      const beat = Number((await query(text))[0]?.['beat'])
      return beat !== before && beat
    }, 'a heartbeat of the session that runs')
  }
  return Object.assign(timed, {
    sessions,
    config,
    /** Puts the present forward, and waits until the session that runs has outlived it. */
    async outlives(seconds: number) {
      later(seconds)
      // Deadlines are looked at more often than that: they were between two heartbeats.
      await heartbeat(await heartbeat(await heartbeat(0)))
    },
    /** Starts a session and gives its id. */
    async start(tier = 1) {
      const session = await sessions.start({ tier, trigger: 'manual', prompt: 'look' })
      if (session === undefined) throw new Error('another session runs')
      return session.id
    },
    /** Waits until no session runs, and gives this one. */
    async ended(id: number) {
      await until(async () => (await q.findRunning(db, {})) === undefined, 'its end')
      return q.findSession(db, { id })
    },
    eventsOf: (session: number) =>
      eventQueries.listEvents(db, { level: null, service: null, session, offset: 0, limit: 10 }),
    linesOf: (id: number) => q.listLines(db, { session: id, after: 0, limit: 10_000 }),
  })
}
