import { t } from 'tap'
import { CHAT_KEY, deliverAlert, startBriefs } from '../../helpers/alerts.ts'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import {
  ended,
  eventsOfSession,
  sessionsOf,
  startGate,
  startOps,
  startOpsProcess,
  trigger,
  type OpsServer,
  type Session,
} from '../../helpers/ops.ts'
import { until } from '../../helpers/until.ts'

const [gate, briefs] = [await startGate(t), await startBriefs(t)]
const variables = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, ...briefs.env }
const one = await startOps(t, postgres, variables)
// Servers in one process count as one holder of sessions: the other one has its own process.
const two = await startOpsProcess(t, postgres, one.env)

/** Starts a session in one of three ways, and says whether it was taken. */
async function start({ base, api }: Pick<OpsServer, 'base' | 'api'>, at: number) {
  if (at % 3 === 0) {
    const { status, text } = await api('POST', '/sessions/trigger', { prompt: `start ${at}` })
    if (status !== 201 && status !== 409) throw new Error(`${status} ${text}`)
    return status === 201
  }
  if (at % 3 === 1) {
    const { status, json } = await deliverAlert(base, `alert ${at}`)
    if (status !== 202) throw new Error(`${status} ${json.error}`)
    return json.status === 'triggered'
  }
  const { status } = await request(`${base}/sessions/trigger`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `prompt=start+${at}&tier=auto`,
    timeoutMs: 30_000,
  })
  if (status !== 303 && status !== 409) throw new Error(`the form: ${status}`)
  return status === 303
}

t.test('30 starts at once on two servers: one session runs', async (t) => {
  await until(() => gate.waiting() > 0, 'the scheduled session')
  t.equal((await sessionsOf(two)).length, 1, 'two schedulers started one')
  for (let round = 0; round < 2; round++) {
    const before = (await sessionsOf(one)).length
    await gate.pass()
    await ended(one)
    const starts = Array.from({ length: 30 }, (_, at) => start(at % 2 === 0 ? one : two, at))
    const won = (await Promise.all(starts)).filter(Boolean)
    t.equal(won.length, 1, 'one start was taken')
    t.equal((await sessionsOf(two)).length, before + 1, 'one session more')
    await until(() => gate.waiting() > 0, 'its check')
  }
  const ids = (await sessionsOf(one)).map(({ id }) => id)
  t.same(ids, [3, 2, 1], 'a start that is refused takes no id')
  gate.open()
  await ended(one)
})

t.test('two schedulers start one session an interval', async (t) => {
  for (const text of [
    'create table ops.claims (at timestamptz)',
    `create function ops.note_claim() returns trigger language plpgsql as
       $$ begin insert into ops.claims values (new.scheduled_at); return new; end $$`,
    `create trigger claims before update on ops.settings for each row
       when (old.scheduled_at <> new.scheduled_at) execute function ops.note_claim()`,
  ]) {
    await one.query(text)
  }
  /** How often either instance has tried to start a session that was due, but for the first. */
  const tries = () =>
    [...one.server.logs(), ...two.server.logs()].filter((line) =>
      line.includes('scheduled session left out: another one runs'),
    ).length
  const before = tries()
  gate.shut()
  // A scheduled session runs only what was not run lately.
  await one.query(`update ops.checks set checked_at = now() - interval '1 hour'`)
  await one.api('PUT', '/config', { interval: 1 })
  await until(
    async () => {
      const { json } = await two.api<{ interval: number }>('GET', '/config')
      return json.interval === 1
    },
    'the other instance to have the interval',
    30_000,
    250,
  )
  await until(() => gate.waiting() > 0, 'the first scheduled session')
  await until(() => tries() >= before + 4, 'four times at which another one was due', 30_000)
  const tried = tries() - before
  // A claim is half an interval after the one before at the earliest, by the instances' own clocks.
  const claims = await one.query(
    `select at - lag(at) over (order by at) < interval '0.5 s' as early from ops.claims`,
  )
  t.notOk(
    claims.some(({ early }) => early === true),
    'none is claimed twice',
  )
  t.ok(tried < claims.length, `${tried + 1} starts, ${claims.length} claims`)
  await one.api('PUT', '/config', { interval: 3_600 })
  gate.open()
  t.match(await ended(one), { trigger: 'scheduled' })
  await one.server.stop()
})

t.test('what a server leaves that is killed, the next one fails, once', async (t) => {
  await ended(two)
  gate.shut()
  const left = await trigger(two)
  await until(() => gate.waiting() > 0, 'its check')
  await two.server.kill()

  const next = await startOps(t, postgres, one.env)
  const { json: failed } = await next.api<Session>('GET', `/sessions/${left.id}`)
  const end = { id: left.id, status: 'failed', exit_code: 1, ended_at: /Z$/ }
  t.match(failed, end, 'before the next one takes a request')
  t.ok((failed.duration_ms ?? 0) > 0)
  const told = {
    level: 'critical',
    service: 'gatehouse',
    message: `Session ${left.id} failed: the process that ran it is gone`,
  }
  t.match(await eventsOfSession(next, left.id), [told])
  const second = await trigger(next)
  t.equal(second.status, 'running', 'another one may run')
  await next.server.stop()

  const last = await startOps(t, postgres, one.env)
  t.match(await ended(last, second.id), { status: 'stopped', exit_code: 1 }, 'a stop stops it')
  t.match(await eventsOfSession(last, left.id), [told])
})
