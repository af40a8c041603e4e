import { t, type Test } from 'tap'
import {
  alertmanager,
  CHAT_KEY,
  deliverAlert,
  keptAs,
  startBriefs,
  timePasses,
  type Receipt,
  type ShownAlert,
} from '../../helpers/alerts.ts'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { calls, inTier, refusal, says, startModel } from '../../helpers/model.ts'
import {
  ended,
  eventsOf,
  listOf,
  sessionsOf,
  startGate,
  startOps,
  trigger,
  type Gate,
  type OpsServer,
} from '../../helpers/ops.ts'
import type { Env } from '../../helpers/program.ts'
import { expectStatus } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

/** A server whose first session has ended, with sessions that a gate can hold up. */
async function startAlerts(t: Test, env: Env) {
  const [gate, briefs] = [await startGate(t), await startBriefs(t)]
  gate.open()
  const variables = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, ...briefs.env }
  const ops = await startOps(t, postgres, { ...variables, ...env })
  await ended(ops)
  return { ops, gate, briefs }
}

async function deliver({ base }: OpsServer, body: string): Promise<Receipt> {
  const { status, json } = await deliverAlert(base, body)
  return status === 202 ? json : Promise.reject(new Error(`answered ${status}: ${json.message}`))
}

/** Delivers an alert that starts nothing, for this reason. */
async function keeps(t: Test, ops: OpsServer, body: string, detail: string | RegExp) {
  t.match(await deliver(ops, body), keptAs(detail))
}

/** An alert with what only its own page shows. */
async function alertOf(ops: OpsServer, title: string) {
  const alerts = await listOf<ShownAlert>(ops, 'alerts?limit=500')
  const listed = alerts.find((alert) => alert.title === title)
  return (await ops.api<ShownAlert>('GET', `/alerts/${listed?.id}`)).json
}

/** Waits until an alert has this outcome. */
function becomes(ops: OpsServer, outcome: string, title: string) {
  return until(
    async () => {
      const alert = await alertOf(ops, title)
      return alert.outcome === outcome && alert
    },
    `the alert ${title} to be ${outcome}`,
    30_000,
    250,
  )
}

/** Waits until an alert has led to a session, and for its end. */
async function lookedInto(ops: OpsServer, title: string) {
  const { session_id } = await becomes(ops, 'triggered', title)
  return ended(ops, Number(session_id))
}

async function alertSessions(ops: OpsServer) {
  const sessions = await sessionsOf(ops, '?limit=100')
  return sessions.filter(({ trigger }) => trigger === 'alert').map(({ id }) => id)
}

/** A session that holds all others up, until the gate opens. */
async function holdSession(ops: OpsServer, gate: Gate) {
  gate.shut()
  const { id } = await trigger(ops, 'busy')
  await until(() => gate.waiting() > 0, 'the session to be held up')
  return id
}

await t.test('an alert is held, over a restart', async (t) => {
  const { ops: one } = await startAlerts(t, { OPS_ALERT_HOLD_S: '60' })
  const down = alertmanager('Down', 'firing', { service: 'shop', tier: 'web' })
  await keeps(t, one, down, 'held for 60 s')
  await keeps(t, one, down, 'joined: it waits already')
  t.match(await alertOf(one, 'Down'), {
    labels: { alertname: 'Down', tier: 'web' },
    firings: 1,
    count: 2,
    outcome: 'waiting',
    due_at: /Z$/,
  })
  t.match(await one.page('/alerts/1'), /waits for a session[\s\S]*Not before/)
  await timePasses(postgres, one.env, 30)
  t.match(await alertOf(one, 'Down'), { outcome: 'waiting' }, 'half of the time is over')
  await one.server.stop()
  await timePasses(postgres, one.env, 31)
  const two = await startOps(t, postgres, one.env)
  const session = await lookedInto(two, 'Down')
  t.match(session, { trigger: 'alert', prompt_text: 'The brief.' })
  t.same(await alertSessions(two), [session.id], 'one session')
  t.match(await alertOf(two, 'Down'), { due_at: null, sessions: [{ status: 'completed' }] })

  await t.test('it is dropped when it resolves meanwhile', async (t) => {
    await keeps(t, two, down, 'held for 60 s')
    const resolved = alertmanager('Down', 'resolved')
    await keeps(t, two, resolved, 'resolved: it waits no longer')
    await keeps(t, two, resolved, 'resolved: nothing starts')
    const over = { state: 'resolved', outcome: 'resolved', resolved_at: /Z$/ }
    t.match(await alertOf(two, 'Down'), over)
    await timePasses(postgres, two.env, 120)
    // The queue is empty before this one, which is read after it.
    await keeps(t, two, alertmanager('Other'), 'held for 60 s')
    await timePasses(postgres, two.env, 61)
    const other = await lookedInto(two, 'Other')
    t.same(await alertSessions(two), [other.id, session.id])
  })

  await t.test('a firing after the end is a new firing', async (t) => {
    await keeps(t, two, down, 'held for 60 s')
    t.match(await alertOf(two, 'Down'), { state: 'firing', firings: 2, resolved_at: null })
    const text = await two.page('/alerts/1')
    t.match(
      text,
      new RegExp(`for the 2nd time[^]*Found and done before[^]*session ${session.id}<`),
    )
  })

  await t.test('a silence that begins meanwhile holds it back', async (t) => {
    await keeps(t, two, alertmanager('Quiet'), 'held for 60 s')
    const ends_at = new Date(Date.now() + 3_600_000).toISOString()
    const body = { match: { alertname: 'Quiet' }, ends_at, reason: 'maintenance' }
    const { json: silence } = await two.api<{ id: number }>('POST', '/silences', body)
    await timePasses(postgres, two.env, 61)
    await becomes(two, 'silenced', 'Quiet')
    await two.api('DELETE', `/silences/${silence.id}`)
    await timePasses(postgres, two.env, 0)
    await lookedInto(two, 'Quiet')
    await deliver(two, alertmanager('Quiet', 'resolved', { service: 'shop' }))
  })

  await t.test('the API lists alerts by state and service', async (t) => {
    const list = async (query: string) =>
      (await listOf<ShownAlert>(two, `alerts${query}`)).map(({ title }) => title)
    await deliver(two, alertmanager('Other', 'resolved'))
    t.same(await list(''), ['Other', 'Quiet', 'Down'], 'the latest delivery first')
    t.same(await list('?limit=1&offset=2'), ['Down'])
    t.same(await list('?state=resolved'), ['Other', 'Quiet'])
    t.same(await list('?state=firing&service=shop'), ['Down'])
    t.same(await list('?service=none'), [])
    const page = await two.page('/alerts?state=resolved')
    t.match(page, 'Other')
    t.notMatch(page, 'Down')
    for (const [path, status, error] of [
      ['/alerts?state=gone', 400, 'state must be firing or resolved'],
      ['/alerts/99', 404, 'alert not found'],
      ['/alerts/x', 400, 'the alert id must be an integer'],
    ] as const) {
      t.match(await two.api('GET', path), { status, json: { error } })
    }
  })
})

await t.test('a repeat joins its predecessor', async (t) => {
  const { ops, briefs } = await startAlerts(t, { OPS_ALERT_DEDUP_S: '600' })
  const full = alertmanager('Full')
  const { session_id, ...first } = await deliver(ops, full)
  t.same(first, { status: 'triggered', tier: 1 })
  await ended(ops, Number(session_id))
  const joined = new RegExp(`^joined: session ${session_id} began \\d+ s ago$`)
  await keeps(t, ops, full, joined)
  await keeps(t, ops, alertmanager('Full', 'resolved'), 'resolved: nothing starts')
  await keeps(t, ops, full, joined)
  t.match(await alertOf(ops, 'Full'), { count: 4, firings: 2, outcome: 'resolved' })
  await timePasses(postgres, ops.env, 601)
  const second = await deliver(ops, full)
  t.match(second, { status: 'triggered' })
  await ended(ops, Number(second.session_id))
  const ids = [{ id: second.session_id }, { id: session_id }]
  t.match((await alertOf(ops, 'Full')).sessions, ids, 'the second delivery detaches nothing')

  await t.test('what led to no session is no predecessor', async (t) => {
    briefs.answer([refusal(400, 'no')])
    const lost = alertmanager('Lost')
    t.match(await deliverAlert(ops.base, lost), { status: 502 })
    briefs.answer(['The brief.'])
    t.match(await deliver(ops, lost), { status: 'triggered' })
    t.match(await lookedInto(ops, 'Lost'), { trigger: 'alert' })
  })

  await t.test('equal deliveries at once are one session, over two instances', async (t) => {
    const two = await startOps(t, postgres, ops.env)
    const before = await alertSessions(ops)
    const both = [ops, two, ops, two, ops, two]
    const receipts = await Promise.all(both.map((one) => deliver(one, alertmanager('Storm'))))
    t.equal(receipts.filter(({ detail }) => detail?.startsWith('joined: ')).length, 5)
    const { id } = await lookedInto(ops, 'Storm')
    t.same(await alertSessions(ops), [id, ...before])
    t.match(await alertOf(ops, 'Storm'), { count: 6 })
  })

  await t.test('one that is being read takes its repeats, and its end', async (t) => {
    const answer = briefs.hold()
    const asked = briefs.asked.length
    const slow = deliver(ops, alertmanager('Slow'))
    await until(() => briefs.asked.length > asked, 'the model to be asked')
    await keeps(t, ops, alertmanager('Slow'), 'joined: it is being read')
    await deliver(ops, alertmanager('Slow', 'resolved'))
    answer('The brief.')
    t.match(await slow, keptAs('resolved: nothing starts'))
    t.match(await alertOf(ops, 'Slow'), { outcome: 'resolved', sessions: [] })
  })
})

await t.test('alerts wait for the session that runs', async (t) => {
  const { ops: one, gate, briefs } = await startAlerts(t, { OPS_ALERT_QUEUE: 'true' })
  const two = await startOps(t, postgres, { ...one.env })
  const busy = await holdSession(one, gate)
  await keeps(t, one, alertmanager('A'), 'queued: 0 before it')
  await keeps(t, two, alertmanager('B'), 'queued: 1 before it')
  await keeps(t, two, alertmanager('C'), 'queued: 2 before it')
  await keeps(t, one, alertmanager('A'), 'joined: it waits already')
  await keeps(t, one, alertmanager('B', 'resolved'), 'resolved: it waits no longer')
  t.equal(briefs.asked.length, 0, 'none is paid for before its time')

  gate.open()
  await ended(one, busy)
  const [a, c] = [await lookedInto(two, 'A'), await lookedInto(one, 'C')]
  t.same(await alertSessions(one), [c.id, a.id], 'the oldest first, one each')

  await t.test('Investigate takes one out of the queue', async (t) => {
    const held = await holdSession(two, gate)
    await keeps(t, two, alertmanager('E'), 'queued: 0 before it')
    await two.query(
      `update ops.alerts set due_at = now() + interval '1 hour' where outcome = 'waiting'`,
    )
    gate.open()
    await ended(two, held)
    const { id } = await alertOf(two, 'E')
    await expectStatus(303, request(`${two.base}/alerts/${id}/investigate`, { method: 'POST' }))
    await lookedInto(two, 'E')
    await timePasses(postgres, two.env, 3_700)
    t.match(await alertOf(two, 'E'), { sessions: { length: 1 } })
  })

  await t.test('one whose brief fails is told, and the next one is read', async (t) => {
    const held = await holdSession(two, gate)
    await deliver(two, alertmanager('F'))
    await deliver(two, alertmanager('G'))
    briefs.answer([refusal(400, 'no'), 'The brief.'])
    gate.open()
    await ended(two, held)
    t.match(await becomes(two, 'failed', 'F'), { problem: '400', sessions: [] })
    await lookedInto(two, 'G')
    const told = (await eventsOf(two)).filter(({ message }) => message.includes('(F)'))
    t.match(told, [{ level: 'critical', message: 'has no brief, and no session looks into it' }])
    t.equal(told.length, 1)
  })
})

await t.test('a hundred wait, and no more', async (t) => {
  const { ops } = await startAlerts(t, { OPS_ALERT_HOLD_S: '3600' })
  await ops.query(
    `with waiting as (
       insert into ops.alerts (fingerprint, content, first_seen, last_seen, outcome, waiting_since, due_at)
       select 'w' || n, 'c', now(), now(), 'waiting', now(), now() + interval '1 hour' from generate_series(1, 100) n
       returning id
     )
     insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
     select id, 'c', 'w', 'w', now(), now() from waiting`,
  )
  const told = async () =>
    (await eventsOf(ops)).filter(({ message }) => /queue|wait/.test(message))
  for (const name of ['X', 'Y']) {
    await keeps(t, ops, alertmanager(name), 'not queued: 100 alerts wait already')
  }
  const text = await ops.page('/waiting')
  t.match(text, /\bX\b[\s\S]*kept: |\bY\b/, 'they wait for a person')
  t.match(await told(), [{ level: 'critical', message: '100 alerts wait for a session' }])
  t.equal((await told()).length, 1, 'once')
  await ops.query(`update ops.alerts set outcome = 'resolved' where id > 49`)
  await timePasses(postgres, ops.env, 0)
  await until(async () => (await told()).length === 2, 'the end of it to be told')
  t.match(await told(), [{ message: 'Alerts are queued again: fewer than 50 wait' }, {}])
  await keeps(t, ops, alertmanager('X'), 'held for 3600 s')
})

const DISK = '{"title":"disk full"}'

/** What became of the one alert, and the newest session that looked into it. */
async function outcomeOf(ops: OpsServer) {
  const [row] = await ops.query(
    `select outcome, holder,
            (select max(s.id)::int from ops.sessions s where s.alert_id = a.id) as session_id
       from ops.alerts a order by id`,
  )
  return row
}

await t.test('an alert whose session ended with the server is read again', async (t) => {
  const { ops: one, gate } = await startAlerts(t, {})
  gate.shut()
  const first = (await deliver(one, DISK)).session_id ?? 0
  t.ok(first > 0, 'its session runs')
  // Its newest delivery started nothing: the session that runs is the one that ends.
  t.match(await deliver(one, DISK), { status: 'acknowledged' })
  await one.server.stop()

  const two = await startOps(t, postgres, one.env)
  const { id: second } = await until(async () => {
    const all = await sessionsOf(two)
    return all.find(({ id, trigger }) => trigger === 'alert' && id > first)
  }, 'the alert to be read again')
  const page = await two.page(`/sessions/${first}`)
  t.match(page, 'Session stopped: the server stopped')
  t.match(page, 'disk full', 'the former session is still that of the alert')
  t.notMatch(await two.page('/waiting'), 'disk full', 'nobody has to look at it')

  await t.test('one that a person stopped is not read again', async (t) => {
    await request(`${two.base}/sessions/${second}/stop`, { method: 'POST' })
    t.match(await ended(two, second), { status: 'stopped' })
    await two.server.stop()
    gate.open()
    const three = await startOps(t, postgres, one.env)
    await ended(three)
    t.match(await outcomeOf(three), { outcome: 'triggered', session_id: second })
  })
})

await t.test('a chain of sessions looks into the newest delivery of its alert', async (t) => {
  const held = Promise.withResolvers<void>()
  t.teardown(() => held.resolve())
  const model = await startModel(t)
  const one = await startOps(t, postgres, { ...model.env, OPS_CHAT_API_KEY: CHAT_KEY })
  await ended(one)
  model.answer(async (asked) => {
    if (asked.tools === undefined) return says('The disk is full.')
    return inTier(2, async () => {
      await held.promise
      return says('Done.')
    })(asked)
  })
  const first = (await deliver(one, DISK)).session_id
  const second = await until(async () => {
    const all = await sessionsOf(one)
    return all.find(({ tier, status }) => tier === 2 && status === 'running')
  }, 'the second tier')
  t.match(await deliver(one, DISK), { status: 'acknowledged' })
  t.notMatch(await one.page('/waiting'), 'disk full')

  await one.server.stop()
  held.resolve()
  t.match(await outcomeOf(one), { outcome: 'received', holder: '' })
  model.answer(({ step, tools }) => {
    if (tools === undefined) return says('The disk is full.')
    return step === 0 ? calls(['read_alert', {}]) : says('Done.')
  })
  const two = await startOps(t, postgres, one.env)
  const third = await lookedInto(two, 'disk full')
  t.match(third, { trigger: 'alert', tier: 1, status: 'completed' })
  for (const id of [first, second.id, third.id]) {
    const text = await two.page(`/sessions/${id}`)
    t.match(text, 'href="/alerts/1"', `session ${id} leads to the alert`)
  }
})
