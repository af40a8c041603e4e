import { spawn } from 'node:child_process'
import { t } from 'tap'
import { machineId } from '../../../kernel/processes/proc.ts'
import {
  failedOutcome,
  type Job,
  type Outcome,
} from '../../../services/ops/agent/runners/runner.ts'
import { callTool } from '../../../services/ops/agent/tools/toolbox.ts'
import { processesWith } from '../../helpers/agents.ts'
import { request } from '../../helpers/http.ts'
import { calls, startModelOps } from '../../helpers/model.ts'
import { ended as endOf, inventoryFile, trigger } from '../../helpers/ops.ts'
import { FULL, refuseRows } from '../../helpers/outages.ts'
import { openTimedSessions, type RunnerParts } from './timed-sessions.ts'
import { useTools } from '../../helpers/tools.ts'
import { until } from '../../helpers/until.ts'

const good: Outcome = { ...failedOutcome(''), problem: null, summary: 'Good.' }

const NAMES = ['up', 'left', 'service', 'bad', 'slow', 'stuck', 'talker']
/** Nobody else sleeps that long: by it the processes of each operation are found. */
const long = (name: string) => `${500_000 + process.pid}.${NAMES.indexOf(name)}`
const sleepers = (name: string) => processesWith(`sleep ${long(name)}`)
t.teardown(() => NAMES.flatMap(sleepers).forEach((pid) => process.kill(pid, 'SIGKILL')))
const up = {
  name: 'up',
  action_type: 'up',
  cooldown: { count: 100, window_s: 60 },
  argv: ['sh', '-c', `setsid sleep ${long('up')} & echo up`],
}
const twice = { name: 'twice', action_type: 'twice', cooldown: { count: 2, window_s: 60 } }
const operations = [up, { ...twice, argv: ['true'] }]
const services = [{ name: 'shop', checks: [], operations }]

let parts: RunnerParts
let run: (job: Job) => Promise<Outcome>
const { env, query, start, logged, ended } = await openTimedSessions(t, 'operations', (made) => {
  parts = { ...made, inventory: { current: async () => ({ services }), isOurs: () => false } }
  return { modelOf: () => 'none', run: (job) => run(job) }
})

/** Runs an operation as an agent's call does, and gives the answer. */
async function runUp(job: Job, others: Partial<RunnerParts> = {}, operation = 'up') {
  const args = { service: 'shop', operation, reason: 'it hangs' }
  return (await callTool('run_operation', args, { ...parts, ...others, job })).text
}

async function outcomes(session: number) {
  const text = 'select outcome from ops.actions where session_id = $1 order by id'
  return (await query(text, [session])).map(({ outcome }) => outcome)
}

/** A session as a server leaves it that was killed: a look of another one ends it. */
async function crashed(): Promise<{ id: number; marker: string }> {
  const [row] = await query(
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
      t.match(await runUp(job), 'up: ended with 0')
      await noOutcomes()
      return good
    }
    const id = await start(3)
    t.match(await ended(id), { status: 'failed' })
    await noEnd()
    t.match(logged(), 'outcome of an operation not recorded')
    // Looks come one after the other: the one that ended it is over when the next one has ended another.
    await ended((await crashed()).id)
    t.equal(sleepers('up').length, 1, 'the service that it started')
    t.same(await outcomes(id), ['its end could not be written'])
  },
)

t.test('20 calls at once never exceed the limit', async (t) => {
  const told: string[] = []
  run = async (job) => {
    const calls = Array.from({ length: 20 }, () => runUp(job, {}, 'twice'))
    told.push(...(await Promise.all(calls)))
    return good
  }
  await ended(await start(3))
  t.equal(told.filter((text) => text.startsWith('twice: ended with 0')).length, 2)
  t.equal(told.filter((text) => text.startsWith('Cooldown: ')).length, 18)
})

t.test('an operation is not run once another instance has ended the session', async (t) => {
  const before = sleepers('up').length
  const ways = [
    `update ops.sessions set status = 'failed', ended_at = now() where id = $1`,
    `update ops.sessions set holder = '1/1' where id = $1`,
    'update ops.sessions set stop_asked = true where id = $1',
  ]
  for (const way of ways) {
    const told = Promise.withResolvers<string>()
    run = async (job) => {
      const db: RunnerParts['db'] = {
        ...parts.db,
        async transaction(work) {
          // This process has not heard of it yet.
          await query(way, [job.session.id])
          return parts.db.transaction(work)
        },
      }
      const signal = new AbortController().signal
      told.resolve(await runUp({ ...job, signal }, { db }))
      return good
    }
    const id = await start(3)
    t.equal(await told.promise, 'It was not run: the session has ended.', way)
    // The look of the test's own process ends what is left.
    await query(`update ops.sessions set holder = '0/0' where id = $1`, [id])
    await ended(id)
    t.same(await outcomes(id), [], way)
  }
  t.equal(sleepers('up').length, before)
})

t.test('after a crash, what fails at its end is done at the next look', async (t) => {
  await query('alter table ops.actions rename to away')
  const { id, marker } = await crashed()
  const action = `insert into ops.away (session_id, service, action_type, operation, at)
    values ($1, 'shop', 'up', 'up', now())`
  await query(action, [id])
  const marked = { ...process.env, STARTED_BY_GATEHOUSE: marker }
  spawn('sleep', [long('left')], { env: marked, stdio: 'ignore' })
  await until(() => sleepers('left').length === 0, 'the end of its process', 30_000, 250)
  // Its value stays when the statement is refused.
  await query('create sequence public.tries')
  await refuseRows(env, 'update on ops.away', `nextval('public.tries') < 3`, FULL)
  await query('alter table ops.away rename to actions')
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  t.same(await outcomes(id), ['the process that ran it is gone'])
})

t.test('what an operation started outlives its session', async (t) => {
  const does = (name: string, script: string) => ({
    name,
    action_type: name,
    timeout_s: name === 'slow' ? 1 : 60,
    argv: ['sh', '-c', script.replaceAll('SLEEP', `sleep ${long(name)}`)],
  })
  const operations = [
    { ...does('service', 'SLEEP & setsid SLEEP & echo service'), verify: 'runs' },
    does('talker', 'sh -c "while echo tick; do sleep 0.1; done; SLEEP" &'),
    does('bad', 'SLEEP & setsid SLEEP & sleep 0.2; exit 3'),
    does('slow', 'SLEEP & setsid SLEEP & trap "exit 0" TERM; SLEEP & wait'),
    does('stuck', 'SLEEP & setsid SLEEP & env -i PATH="$PATH" setsid SLEEP & SLEEP'),
  ]
  const checks = [{ type: 'process', name: 'runs', match: `sleep ${long('service')}` }]
  const { ops, model } = await startModelOps(t, {
    OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks, operations }] }),
  })
  const call = (operation: string) =>
    ['run_operation', { service: 'shop', operation, reason: 'it hangs' }] as const
  const list = ['service', 'talker', 'bad', 'slow'].map(call)
  const told = await useTools(t, { model, ops }, list, 3)
  t.match(told, [
    'service: ended with 0; check runs is good: 2 processes run\nservice',
    'talker: ended with 0\ntick\n',
    'Error: bad: ended with 3',
    'Error: slow: it took over 1 s',
  ])
  t.equal(sleepers('service').length, 2, 'in its group, and in a session of its own')
  t.equal(sleepers('talker').length, 1, 'one that writes where its operation has written')
  t.same(sleepers('bad'), [], 'one that failed leaves nothing, whatever group it is in')
  t.same(sleepers('slow'), [], 'nor one that took too long')

  model.answer([calls(call('stuck'))])
  const { id } = await trigger(ops, 'look', 3)
  await until(() => sleepers('stuck').length > 3, 'the operation', 30_000, 250)
  await request(`${ops.base}/sessions/${id}/stop`, { method: 'POST' })
  t.match(await endOf(ops, id), { tier: 3, status: 'stopped' })
  t.same(sleepers('stuck'), [], 'nor one whose session is stopped')

  await ops.server.stop()
  t.equal(sleepers('service').length, 2, 'it outlives the server')
})
