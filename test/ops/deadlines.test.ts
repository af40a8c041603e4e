import { t } from 'tap'
import type { Test } from 'tap'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import { listEvents } from '../../db/ops/events.ts'
import type { Event } from '../../db/ops/rows.ts'
import { findRunning, findSession, listLines } from '../../db/ops/sessions.ts'
import type { Clock } from '../../kernel/clock.ts'
import { createLog } from '../../kernel/log.ts'
import { machineId } from '../../kernel/processes.ts'
import { ownHolder } from '../../kernel/spawn.ts'
import { openRunningConfig } from '../../services/ops/config.ts'
import { createRedact } from '../../services/ops/redact.ts'
import { createCliRunner } from '../../services/ops/runners/cli.ts'
import { openSessions } from '../../services/ops/sessions/sessions.ts'
import { claudeResult, makeAgent, processesWith } from '../helpers/agent-setup.ts'
import { backends } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { transcript } from '../helpers/transcript.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
/** The present, and how far the tests have put it forward: no deadline passes by itself. */
let forward = 0
const clock: Clock = {
  now: () => new Date(Date.now() + forward),
  every(ms, callback) {
    const timer = setInterval(callback, ms / 20)
    return () => clearInterval(timer)
  },
}
const later = (seconds: number): void => void (forward += seconds * 1_000)

/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `${300_000 + process.pid}.5`
const sleepers = (): readonly number[] => processesWith(`sleep ${long}`)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

const env = await postgres.env(t)
let logged = ''
const log = createLog((text) => {
  transcript('log', text, 'deadlines')
  logged += text
}, clock.now)
const { db, close } = await openDatabase({ url: env['DATABASE_URL'], dataDirectory: '' }, log)
await migrate(db)
const agent = await makeAgent(t)
const folder = await temporaryFolder(t, 'ops')
const models = { tier1_model: 'default', tier2_model: 'default', tier3_model: 'default' }
const folders = { state_dir: folder, results_dir: folder, repos_dir: folder }
const config = await openRunningConfig(db, clock, log, () => {
  return { ...models, ...folders, interval: 3_600, dry_run: false, max_tier: 3 }
})
const redact = createRedact(() => [])
const runner = createCliRunner({
  ...{ db, clock, log, redact },
  inventory: { current: async () => ({ services: [] }) },
  dryRun: async () => false,
  command: () => agent.command.split(' '),
  budgets: () => ({ session: undefined, day: undefined }),
  maxTurns: () => 1_000,
})
const sessions = await openSessions({
  ...{ db, clock, log, config, redact, resultsDir: folder, runner: () => runner },
  ...{ holder: ownHolder(), machine: machineId() },
})
t.teardown(async () => {
  await sessions.close()
  config.close()
  await close()
})

async function start(): Promise<number> {
  const session = await sessions.start({ tier: 1, trigger: 'manual', prompt: 'look' })
  if (session === undefined) throw new Error('another session runs')
  return session.id
}

async function ended(id: number): Promise<Awaited<ReturnType<typeof findSession>>> {
  await until(async () => (await findRunning(db)) === undefined, 'its end', 30_000)
  return findSession(db, id)
}

async function eventsOf(id: number): Promise<readonly Event[]> {
  return listEvents(db, { level: null, service: null, session: id }, 0, 10)
}

/** A session is timed out for this reason, and nothing of it survives. */
async function timedOut(t: Test, id: number, why: RegExp): Promise<void> {
  const session = await ended(id)
  t.match(session, { status: 'timed_out', cost_usd: null })
  t.not(session?.exit_code, 0, 'it has no good exit code')
  t.match(await eventsOf(id), [{ level: 'warning', message: why }])
  t.same(sleepers(), [])
}

async function said(id: number): Promise<number> {
  return (await listLines(db, id, 0, 10_000)).length
}

t.test('a session without a first output is timed out', async (t) => {
  agent.does(`setsid sleep ${long} & sleep ${long}\n`)
  const id = await start()
  await until(() => sleepers().length === 2, 'its processes')
  later(61)
  await timedOut(t, id, /gave no output within \d+ s/)
})

t.test('a session that falls silent is timed out', async (t) => {
  agent.does(`echo here; setsid sleep ${long} & sleep ${long}\n`)
  const id = await start()
  await until(() => said(id), 'its output')
  later(181)
  await timedOut(t, id, /was silent for \d+ s/)
})

t.test('a session that never comes to an end is timed out', async (t) => {
  agent.does('while :; do echo here; sleep 0.1; done\n')
  const id = await start()
  for (let at = 0; at < 6; at++) {
    const before = await said(id)
    await until(async () => (await said(id)) > before, 'more output')
    later(101)
  }
  await timedOut(t, id, /it took over 10 minutes/)
})

t.test(
  'a session whose row was ended by another instance is stopped, and writes nothing',
  async (t) => {
    agent.does(`trap '' INT TERM; while :; do echo here; sleep 0.2; sleep ${long} & done\n`)
    const id = await start()
    await until(() => sleepers().length > 0, 'its children')
    const text = `update ops.sessions set status = 'failed', ended_at = now(), exit_code = 1 where id = $1`
    await postgres.query(env, text, [id])
    await until(() => sleepers().length === 0, 'the end of its children')
    agent.says([claudeResult()])
    const next = await until(
      () => sessions.start({ tier: 1, trigger: 'manual', prompt: null }),
      'the next session',
    )
    t.match(await ended(next.id), { status: 'completed' })
    t.match(await findSession(db, id), { status: 'failed', exit_code: 1, cost_usd: null })
  },
)

t.test('a session whose end could not be written fails when its lease lapses', async (t) => {
  await postgres.query(
    env,
    `alter table ops.sessions add constraint no_end check (status <> 'completed') not valid`,
  )
  agent.says([claudeResult()])
  const id = await start()
  await until(() => logged.includes('session not finished'), 'its failure to end')
  later(21)
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  t.match(await eventsOf(id), [{ level: 'critical', service: 'gatehouse' }])
  await postgres.query(env, 'alter table ops.sessions drop constraint no_end')
  t.match(await ended(await start()), { status: 'completed' }, 'the next one runs')
})
