import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, deliverAlert, startBriefs } from '../helpers/alerts.ts'
import { onPostgres } from '../helpers/backends.ts'
import type { Backend, Row } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { calls, inTier, refusal, says, startModel } from '../helpers/model.ts'
import { ended, eventsOfSession, sessionsOf, startGate, startOps } from '../helpers/ops.ts'
import type { OpsServer, Session } from '../helpers/ops.ts'
import { until } from '../helpers/until.ts'

const DISK = '{"title":"disk full"}'

async function alertsIn({ env }: OpsServer, backend: Backend): Promise<readonly Row[]> {
  return backend.query(
    env,
    `select outcome, problem, holder,
            (select max(s.id)::int from ops.sessions s where s.alert_id = a.id) as session_id
       from ops.alerts a order by id`,
  )
}

async function messagesOf(ops: OpsServer, id: number): Promise<readonly string[]> {
  const own = await eventsOfSession(ops, id)
  return own.map(({ level, message }) => `${level} ${message}`)
}

async function sessionOf({ api }: OpsServer, id: number): Promise<Session> {
  return (await api<Session>('GET', `/sessions/${id}`)).json
}

/** As if no session had begun for long: else the next start begins no scheduled one. */
async function forgetSchedule({ env }: OpsServer, backend: Backend): Promise<void> {
  await backend.query(env, `update ops.settings set scheduled_at = now() - interval '1 day'`)
}

await onPostgres(t, 'an alert whose session ended with the server', async (t: Test, backend) => {
  const [gate, briefs] = [await startGate(t), await startBriefs(t)]
  const env = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, ...briefs.env }
  const one = await startOps(t, backend, env)
  await gate.pass()
  await ended(one)

  const first = (await deliverAlert(one.base, DISK)).json.session_id ?? 0
  t.ok(first > 0, 'its session runs')
  // Its newest delivery started nothing: the session that runs is the one that ends.
  t.match((await deliverAlert(one.base, DISK)).json, { status: 'acknowledged' })
  await one.server.stop()
  await forgetSchedule(one, backend)

  const two = await startOps(t, backend, one.env)
  const { id: second } = await until(async () => {
    const [newest] = await sessionsOf(two)
    return newest?.trigger === 'alert' && newest.status === 'running' && newest
  }, 'the alert to be read again')
  t.ok(second > first)
  t.match(await sessionOf(two, first), { trigger: 'alert', status: 'stopped', exit_code: 1 })
  t.same(await messagesOf(two, first), [`warning Session ${first} stopped: the server stopped`])
  const page = await request(`${two.base}/sessions/${first}`)
  t.match(page.text, 'Session stopped: the server stopped')
  t.match(page.text, 'disk full', 'the former session is still that of the alert')
  const waiting = await request(`${two.base}/waiting`)
  t.notMatch(waiting.text, 'disk full', 'nobody has to look at it')

  await t.test('one that a person stopped is not read again', async (t) => {
    await request(`${two.base}/sessions/${second}/stop`, { method: 'POST' })
    t.match(await ended(two, second), { status: 'stopped' })
    t.same(await messagesOf(two, second), [])
    await two.server.stop()
    gate.open()
    const three = await startOps(t, backend, one.env)
    await ended(three)
    await three.server.stop()
    t.match(await alertsIn(three, backend), [{ outcome: 'triggered', session_id: second }])
  })
})

await onPostgres(
  t,
  'one that can not be read again waits for a person',
  async (t: Test, backend) => {
    const [gate, briefs] = [await startGate(t), await startBriefs(t)]
    const env = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, ...briefs.env }
    const one = await startOps(t, backend, env)
    await gate.pass()
    await ended(one)
    t.match((await deliverAlert(one.base, DISK)).json, { status: 'triggered' })
    await one.server.stop()

    briefs.answer([refusal(400, 'no')])
    const two = await startOps(t, backend, one.env)
    const isWaiting = async () => (await request(`${two.base}/waiting`)).text.includes('disk full')
    await until(isWaiting, 'the alert to wait')
    t.match(await alertsIn(two, backend), [{ outcome: 'failed', problem: /answered 400/ }])
  },
)

await onPostgres(t, 'a chain of sessions', async (t: Test, backend) => {
  const held = Promise.withResolvers<void>()
  t.teardown(() => held.resolve())
  const model = await startModel(t)
  const env = { ...model.env, OPS_CHAT_API_KEY: CHAT_KEY }
  const one = await startOps(t, backend, env)
  await ended(one)
  const brief = says('The disk is full.')
  const isBrief = (system: string): boolean => /^You write briefs/.test(system)
  model.answer(async (asked) => {
    if (isBrief(String(asked.messages[0]?.content))) return brief
    return inTier(2, async () => {
      await held.promise
      return says('Done.')
    })(asked)
  })

  const first = (await deliverAlert(one.base, DISK)).json.session_id ?? 0
  const second = await until(async () => {
    const all = await sessionsOf(one)
    return all.find(({ tier, status }) => tier === 2 && status === 'running')
  }, 'the second tier')
  t.match((await deliverAlert(one.base, DISK)).json, { status: 'acknowledged' })
  const waiting = await request(`${one.base}/waiting`)
  t.notMatch(waiting.text, 'disk full', 'the chain looks into its newest delivery')

  await one.server.stop()
  held.resolve()
  t.match(await alertsIn(one, backend), [{ outcome: 'received', holder: '' }])
  model.answer(({ step, messages }) => {
    if (isBrief(String(messages[0]?.content))) return brief
    return step === 0 ? calls(['read_alert', {}]) : says('Done.')
  })
  const two = await startOps(t, backend, one.env)
  const third = await until(async () => {
    const [alert] = await alertsIn(two, backend)
    return alert?.['outcome'] === 'triggered' && Number(alert['session_id'])
  }, 'the alert to be read again')
  t.match(await ended(two, third), { trigger: 'alert', tier: 1, status: 'completed' })
  for (const id of [first, second.id, third]) {
    const { text } = await request(`${two.base}/sessions/${id}`)
    t.match(text, 'href="/alerts/1"', `session ${id} leads to the alert`)
  }
})
