import { spawn } from 'node:child_process'
import { t } from 'tap'
import { machineId } from '../../kernel/processes.ts'
import { failedOutcome, type Job, type Outcome } from '../../services/ops/runners/runner.ts'
import { callTool } from '../../services/ops/tools/toolbox.ts'
import { processesWith } from '../helpers/agent-setup.ts'
import { backends } from '../helpers/backends.ts'
import { FULL, refuseRows } from '../helpers/refused-rows.ts'
import { openTimedSessions } from '../helpers/sessions-setup.ts'
import type { RunnerParts } from '../helpers/sessions-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const good: Outcome = { ...failedOutcome(''), status: 'completed', problem: null, summary: 'Good.' }

/** Nobody else sleeps that long: by it the processes of each test are found. */
const long = (name: string): string => `${700_000 + process.pid}.${name.length}`
const sleepers = (name: string): readonly number[] => processesWith(`sleep ${long(name)}`)
t.teardown(() => ['up', 'left'].flatMap(sleepers).forEach((pid) => process.kill(pid, 'SIGKILL')))
const up = {
  ...{ name: 'up', action_type: 'up', cooldown: { count: 100, window_s: 60 } },
  argv: ['sh', '-c', `setsid sleep ${long('up')} & echo up`],
}
const services = [{ name: 'shop', checks: [], operations: [up] }]

let parts: RunnerParts
let run: (job: Job) => Promise<Outcome>
const { env, sessions, logged, ended } = await openTimedSessions(t, 'operations', (made) => {
  parts = { ...made, inventory: { current: async () => ({ services }), isOurs: () => false } }
  return { name: 'probe', modelOf: () => 'none', run: (job) => run(job) }
})

async function start(): Promise<number> {
  return (await sessions.start({ tier: 3, trigger: 'manual', prompt: 'look' }))?.id ?? 0
}

/** Runs the operation as an agent's call does, and gives the answer. */
async function runUp(job: Job, others: Partial<RunnerParts> = {}): Promise<string> {
  const args = { service: 'shop', operation: 'up', reason: 'it hangs' }
  return (await callTool('run_operation', args, { ...parts, ...others, job })).text
}

async function outcomes(session: number): Promise<readonly unknown[]> {
  const text = 'select outcome from ops.actions where session_id = $1 order by id'
  return (await postgres.query(env, text, [session])).map(({ outcome }) => outcome)
}

/** A session as a server leaves it that was killed: a look of another one ends it. */
async function crashed(): Promise<{ readonly id: number; readonly marker: string }> {
  const [row] = await postgres.query(
    env,
    `insert into ops.sessions (tier, model, status, trigger, started_at, heartbeat_at, holder, machine)
     values (3, 'none', 'running', 'manual', now(), now(), '0/0', $1) returning id::int, marker::text`,
    [machineId()],
  )
  return { id: Number(row?.['id']), marker: String(row?.['marker']) }
}

t.test(
  'what it started outlives an outage that takes its outcome and the session’s end',
  async (t) => {
    const noOutcomes = await refuseRows(env, 'update on ops.actions', 'true')
    const noEnd = await refuseRows(env, 'update on ops.sessions', `new.status = 'completed'`, FULL)
    run = async (job) => {
      t.match(await runUp(job), /^up: ended with 0/)
      await noOutcomes()
      return good
    }
    const id = await start()
    t.match(await ended(id), { status: 'failed' })
    await noEnd()
    t.match(logged(), 'outcome of an operation not recorded')
    // Looks come one after the other: the one that ended it is over when the next one has ended another.
    await ended((await crashed()).id)
    t.equal(sleepers('up').length, 1, 'the service that it started')
    t.same(await outcomes(id), ['its end could not be written'])
  },
)

t.test('an outcome that can’t be noted at first is noted later', async (t) => {
  await postgres.query(env, 'create sequence public.tries')
  // Its value stays when the statement is refused.
  const room = await refuseRows(env, 'update on ops.actions', `nextval('public.tries') < 3`, FULL)
  run = async (job) => {
    t.match(await runUp(job), /^up: ended with 0/)
    return good
  }
  const id = await start()
  t.match(await ended(id), { status: 'completed' })
  await room()
  t.same(await outcomes(id), ['ended with 0'])
})

t.test(
  'a session that ended while it waited for its turn runs nothing, and nothing counts',
  async (t) => {
    const before = sleepers('up').length
    let told: string | undefined
    run = async (job) => {
      const db: RunnerParts['db'] = {
        ...parts.db,
        async transaction(work) {
          await sessions.stop(job.session.id)
          await new Promise((resolve) => job.signal.addEventListener('abort', resolve))
          return parts.db.transaction(work)
        },
      }
      told = await runUp(job, { db })
      return good
    }
    const id = await start()
    t.match(await ended(id), { status: 'stopped' })
    t.equal(told, 'It was not run: the session has ended.')
    t.same(await outcomes(id), [])
    t.equal(sleepers('up').length, before)
  },
)

t.test('after a crash, what fails at its end is done at the next look', async (t) => {
  const query = (text: string, params: readonly (string | number)[] = []) =>
    postgres.query(env, text, params)
  await query('alter table ops.actions rename to away')
  const { id, marker } = await crashed()
  const action = `insert into ops.away (session_id, service, action_type, operation, at)
    values ($1, 'shop', 'up', 'up', now())`
  await query(action, [id])
  const marked = { ...process.env, STARTED_BY_GATEHOUSE: marker }
  spawn('sleep', [long('left')], { env: marked, stdio: 'ignore' })
  await until(() => sleepers('left').length === 0, 'the end of its process')
  await query(`select setval('public.tries', 1, false)`)
  await refuseRows(env, 'update on ops.away', `nextval('public.tries') < 3`, FULL)
  await query('alter table ops.away rename to actions')
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  t.same(await outcomes(id), ['the process that ran it is gone'])
})
