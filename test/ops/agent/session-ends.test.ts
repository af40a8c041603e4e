import { once } from 'node:events'
import { t } from 'tap'
import {
  failedOutcome,
  type Job,
  type Outcome,
} from '../../../services/ops/agent/runners/runner.ts'
import { holderOf, machineId } from '../../../kernel/processes/proc.ts'
import { connectionTo } from '../../helpers/backends.ts'
import { FULL, refuseRows, rollbacks } from '../../helpers/outages.ts'
import { openTimedSessions, OPERATOR } from './timed-sessions.ts'
import { until } from '../../helpers/until.ts'

const good: Outcome = { ...failedOutcome(''), problem: null, summary: 'Good.' }
const LEASES = `select id from ops.sessions where status = 'running'`
const END = `update ops.sessions set status = 'stopped', ended_at = now(), exit_code = 1 where id = $1`
let run: (job: Job) => Promise<Outcome> = async () => good
const { env, query, sessions, later, logged, start, ended, eventsOf, linesOf } =
  await openTimedSessions(t, 'ends', () => ({ modelOf: () => 'none', run: (job) => run(job) }))

/** The signal of a job may have come before anybody waits for it. */
async function aborted({ signal }: Job) {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Has the database refuse some rows of a table as if it were full, until the result is called. */
function full(table: string, when: string) {
  return refuseRows(env, `insert or update on ops.${table}`, when, FULL)
}

const idsAfter = (id: number) => query('select id from ops.sessions where id > $1', [id])

t.test('a session that was stopped begins no next tier', async (t) => {
  run = async (job) => {
    await aborted(job)
    job.escalate('too late', 'what was found')
    return good
  }
  const id = await start()
  t.ok(await sessions.stop(id, OPERATOR))
  t.match(await ended(id), { status: 'stopped' })
  t.same(await idsAfter(id), [])
})

t.test('a runner that does not stop holds no session for long', async (t) => {
  run = () => new Promise(() => undefined)
  const id = await start()
  t.ok(await sessions.stop(id, OPERATOR))
  t.match(await ended(id), { status: 'stopped', exit_code: 1, summary: null })
})

t.test('a moment without a database at the end costs neither output nor reason', async (t) => {
  const rooms: (() => Promise<void>)[] = []
  run = async (job) => {
    job.output.write('text', 'looked')
    for (const table of ['sessions', 'session_lines', 'events'])
      rooms.push(await full(table, 'true'))
    return failedOutcome('the model is gone')
  }
  const before = logged().length
  const id = await start()
  const now = () => logged().slice(before)
  await until(() => now().includes('session not finished yet'), 'the first of its last writes')
  for (const room of rooms) await room()
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  t.match(await eventsOf(id), [{ message: `Session ${id} failed: the model is gone` }])
  t.match(await linesOf(id), [{ text: 'looked' }, { text: 'Session failed: the model is gone' }])
  t.notOk(now().includes('lost'), 'nothing is said to be lost')
})

t.test('an event whose answer was lost is not there twice', async (t) => {
  run = async ({ session: { id } }) => {
    // As the first try has stored it.
    const text = `insert into ops.events (session_id, level, service, message, created_at)
      values ($1, 'warning', 'gatehouse', $2, now())`
    await query(text, [id, `Session ${id} failed: the model is gone`])
    return failedOutcome('the model is gone')
  }
  const id = await start()
  t.match(await ended(id), { status: 'failed' })
  t.equal((await eventsOf(id)).length, 1)
})

t.test('output that can’t be stored waits, and that is said once', async (t) => {
  const written = Promise.withResolvers<void>()
  run = async (job) => {
    job.output.write('text', 'looked\n')
    await written.promise
    job.output.write('text', 'looked again\n')
    return good
  }
  const begin = logged().length
  const said = (text: string) => logged().slice(begin).split(text).length - 1
  const room = await full('session_lines', 'true')
  const before = await rollbacks(env)
  const id = await start()
  await until(async () => (await rollbacks(env)) > before + 5, 'several tries')
  await room()
  await until(() => said('session output is stored again') > 0, 'its output to be stored')
  written.resolve()
  t.match(await ended(id), { status: 'completed' })
  t.match(await linesOf(id), [{ text: 'looked' }, { text: 'looked again' }])
  t.same([said('session output not stored'), said('session output is stored again')], [1, 1])
})

t.test('a session that another instance has ended says nothing more', async (t) => {
  let left = false
  const lost = await openTimedSessions(t, 'lost', () => ({
    modelOf: () => 'none',
    async run(job) {
      job.output.write('text', 'looked\n')
      await aborted(job)
      job.output.write('text', 'too late\n')
      left = true
      return failedOutcome('the agent was ended')
    },
  }))
  const id = await lost.start()
  await until(async () => (await lost.linesOf(id)).length > 0, 'its first line')
  await lost.query(END, [id])
  await until(() => left, 'its lease to be found lost')
  await lost.sessions.close()
  t.same(await lost.eventsOf(id), [])
  const texts = (await lost.linesOf(id)).map(({ text }) => text)
  t.same(texts, ['looked'])
})

/** Stores a running session that nobody here runs: of a machine elsewhere, unless another one is named. */
async function begun(holder = '1/1', machine = 'elsewhere') {
  const [row] = await query(
    `insert into ops.sessions (tier, model, status, trigger, started_at, heartbeat_at, holder, machine)
     values (1, 'none', 'running', 'manual', now(), now(), $1, $2) returning id::int`,
    [holder, machine],
  )
  return Number(row?.['id'])
}

t.test('a session that began by a commit whose answer was lost is ended soon', async (t) => {
  // As it stands when the answer to its commit is lost.
  const id = await begun(holderOf(), machineId())
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  const message = `Session ${id} failed: the database did not confirm its beginning`
  t.match(await eventsOf(id), [{ level: 'critical', message }])
})

t.test(
  'a machine whose clock is behind keeps its session while it renews the lease',
  async (t) => {
    const id = await begun()
    const renew = `update ops.sessions set heartbeat_at = now() - interval '30 s' where id = $1`
    for (let renewed = 0; renewed < 3; renewed++) {
      await query(renew, [id])
      await t.rejects(start())
    }
    await query(END, [id])
  },
)

t.test('a lease that is renewed while it is found lapsed stays', async (t) => {
  const id = await begun()
  const sql = connectionTo(t, env)
  const waiting = `select 1 from pg_stat_activity
                    where datname = current_database() and wait_event_type = 'Lock'`
  const waits = async () => (await query(waiting)).length > 0
  await sql.begin(async (tx) => {
    await tx`update ops.sessions set heartbeat_at = now() + interval '1 hour' where id = ${id}`
    await until(() => {
      later(7)
      return waits()
    }, 'its end to wait for the row')
  })
  const others = `select 1 from pg_stat_activity
                   where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`
  await until(async () => (await query(others)).length === 0, 'its end to be done')
  t.equal((await query(LEASES)).length, 1)
  await query(END, [id])
})

t.test('a session of another machine is failed when its lease has lapsed', async (t) => {
  run = async () => good
  const id = await begun()
  await t.rejects(start(), 'a fresh lease stays')
  await until(async () => {
    later(7)
    return (await query(LEASES)).length === 0
  }, 'its end')
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  const message = `Session ${id} failed: the process that ran it is gone`
  t.match(await eventsOf(id), [{ level: 'critical', message }])
  t.match(await ended(await start()), { status: 'completed' }, 'the next one runs')
})

t.test('a clock that is ahead ends no session of another machine', async (t) => {
  const id = await begun()
  const runner = { modelOf: () => 'none', run: async () => good }
  await openTimedSessions(t, 'ahead', () => runner, { env, began: Date.now() + 3_600_000 })
  const text = 'select status from ops.sessions where id = $1'
  t.same(await query(text, [id]), [{ status: 'running' }])
  await query(`update ops.sessions set machine = $1 where id = $2`, [machineId(), id])
  t.match(await ended(id), { status: 'failed' }, 'one of a process that has ended is failed')
})

t.test('what a session has cost is kept while it runs, and by a runner that broke', async (t) => {
  const stored = Promise.withResolvers<void>()
  run = async (job) => {
    job.noteCost(0.25)
    await stored.promise
    job.noteCost(0.5)
    throw new Error('a bug')
  }
  const id = await start()
  const text = 'select cost_usd from ops.sessions where id = $1'
  const isStored = async () => (await query(text, [id]))[0]?.['cost_usd'] === 0.25
  await until(isStored, 'its cost while it runs')
  stored.resolve()
  t.match(await ended(id), { status: 'failed', cost_usd: 0.5 })
})

t.test('what was found is told when the server stops before the next tier begins', async (t) => {
  const told = Promise.withResolvers<Job>()
  run = async (job) => {
    told.resolve(job)
    await aborted(job)
    return good
  }
  await query(
    `insert into ops.alerts (fingerprint, content, first_seen, last_seen, outcome)
     values ('f', 'c', now(), now(), 'acknowledged')`,
  )
  const request = { tier: 1, trigger: 'alert', prompt: 'look', alert: 1 } as const
  const { id = 0 } = (await sessions.start(request)) ?? {}
  const job = await told.promise
  job.escalate('the disk is full', 'logs grow by 1 GB an hour')
  await sessions.close()
  t.match(await ended(id), { status: 'escalated' })
  const message =
    'escalated, and the server stopped before tier 2 began: the disk is full\nlogs grow by'
  t.match(await eventsOf(id), [{ level: 'warning', message }])
  const alerts = await query('select outcome, problem from ops.alerts')
  t.match(alerts, [{ outcome: 'received', problem: 'ended with the server, so it is read again' }])
  await t.rejects(start(), 'no other session begins')
  t.same(await idsAfter(id), [])
})
