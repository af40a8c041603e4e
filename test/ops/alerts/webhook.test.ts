import { t, type Test } from 'tap'
import type { ApiResponse } from '../../helpers/api.ts'
import { CHAT_KEY, deliverAlert, sample, startBriefs, type Receipt } from '../../helpers/alerts.ts'
import { onPostgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { ended, sessionsOf, startGate, startOps, trigger } from '../../helpers/ops.ts'
import { refuses } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

const MIB = 1024 * 1024
const HUGE = 'x'.repeat(MIB + 1)
const WRONG = { authorization: 'Bearer none' }
const BLANK = ['', '\r\n\t \n', '\ufeff \u2003']
const FOREIGN = [
  '',
  'Bearer ',
  CHAT_KEY,
  `Basic ${CHAT_KEY}`,
  `Bearer ${CHAT_KEY}x`,
  `Bearer ${CHAT_KEY.slice(0, -1)}`,
  `Bearer ${CHAT_KEY.toUpperCase()}`,
  'Bearer \u00ff',
]

type Delivered = ApiResponse<Receipt>

/** A refusal of 502 or 503: `{error, message}` alone. */
function fails(t: Test, { status, json }: Delivered, expected: number, message: string) {
  t.match({ status, json }, { status: expected, json: { error: /\S/, message } })
  t.same(Object.keys(json).toSorted(), ['error', 'message'])
}

function acknowledged(t: Test, { status, json }: Delivered, what: string) {
  const body = { session_id: null, status: 'acknowledged', message: 'running' }
  t.match({ status, json }, { status: 202, json: body }, what)
  t.same(Object.keys(json).toSorted(), Object.keys(body).toSorted(), what)
}

await onPostgres(t, 'the order of refusals', async (t, backend) => {
  const gate = await startGate(t)
  const unset = await startOps(t, backend, {
    ...(await backend.env(t)),
    OPS_INVENTORY: gate.inventory,
  })

  await t.test('503 without a key, whatever else is wrong', async (t) => {
    for (const [body, headers] of [['{}'], [HUGE, WRONG]] as const) {
      fails(t, await deliverAlert(unset.base, body, headers), 503, 'OPS_CHAT_API_KEY')
    }
    const chat = await request(`${unset.base}/v1/models`)
    const error = { code: 'not_configured', type: 'server_error' }
    t.match([chat.status, chat.json()], [503, { error }], 'nor is there a chat')
  })
  // Else the scheduler of the next server would start the session of this one.
  await until(async () => (await sessionsOf(unset)).length > 0, 'the session at the start')
  await unset.server.stop()

  const ops = await startOps(t, backend, { ...unset.env, OPS_CHAT_API_KEY: CHAT_KEY })
  const { base } = ops
  // Its scheduler knows that one started a moment ago.
  await trigger(ops)

  await t.test('401 for any other token, whatever else is wrong', async (t) => {
    for (const authorization of FOREIGN) {
      const answer = await deliverAlert(base, '{}', { authorization })
      const what = authorization.replaceAll(CHAT_KEY, 'KEY')
      refuses(t, answer, [401, undefined, 'unauthorized'], what)
      t.equal(answer.headers['www-authenticate'], 'Bearer')
    }
    const none = await request(`${base}/api/v1/webhook?token=${CHAT_KEY}`, {
      method: 'POST',
      headers: { 'x-webhook-token': CHAT_KEY, cookie: `token=${CHAT_KEY}` },
      body: '{}',
    })
    t.equal(none.status, 401, 'a key in any other place')
    refuses(t, await deliverAlert(base, HUGE, WRONG), [401])
  })

  await t.test('413 over 1 MiB, although a session runs', async (t) => {
    const half = ' '.repeat(MIB / 2)
    for (const body of [HUGE, [half, half, ' ']]) {
      const answer = await deliverAlert(base, body)
      refuses(t, answer, [413, undefined, 'the body exceeds 1048576 bytes'])
    }
    acknowledged(t, await deliverAlert(base, HUGE.slice(1)), 'exactly 1 MiB')
    const list = await ops.page('/alerts')
    const [, alert = ''] = /href="(\/alerts\/\d+)"/.exec(list) ?? []
    const payload = /x{1000,}/
    t.notMatch(list, payload, 'a row shows no payload')
    t.equal(payload.exec(await ops.page(alert))?.[0].length, 20_000, 'its beginning is shown')
  })

  await t.test('400 when blank, although a session runs', async (t) => {
    for (const body of BLANK) {
      const answer = await deliverAlert(base, body)
      refuses(t, answer, [400, undefined, 'the body is blank'], JSON.stringify(body))
    }
  })

  await t.test('202 acknowledged while a session runs, without a model', async (t) => {
    acknowledged(t, await deliverAlert(base, '{}'), 'any body')
    for (const scheme of ['bearer', 'BEARER', 'Bearer  ']) {
      const answer = await deliverAlert(base, 'x', { authorization: `${scheme} ${CHAT_KEY}` })
      acknowledged(t, answer, `the scheme's name may be written ${scheme}`)
    }
    const elsewhere = { host: 'ops.example', 'sec-fetch-site': 'cross-site' }
    acknowledged(t, await deliverAlert(base, 'x', elsewhere), 'called by any name')
  })

  await t.test('502 without a model when nothing runs', async (t) => {
    gate.open()
    await ended(ops)
    fails(t, await deliverAlert(base, '{}'), 502, 'OPS_MODEL_URL is not set')
  })

  await t.test('real senders: what is grouped, and what it is called', async (t) => {
    const [last] = await backend.query(ops.env, 'select max(id) as id from ops.alerts')
    const prometheus = sample('alertmanager-v4-firing.json')
    const group = (...fingerprints: readonly string[]) => {
      const { alerts, ...rest } = JSON.parse(prometheus)
      const others = fingerprints.map((fingerprint) => ({ ...alerts[0], fingerprint }))
      return JSON.stringify({ ...rest, alerts: others })
    }
    const log = (at: string, what = 'disk') => `${at} db-1: ${what} is full (97 %)`
    const [hash, long, plain] = [/^sha256:/, 'x'.repeat(190), 'y'.repeat(190)]
    /** Fingerprint, title, and the bodies that are one alert. */
    const alerts: readonly (readonly [string | RegExp, string, ...string[]])[] = [
      // The same group with other members.
      ['{}:{alertname="InstanceDown"}', 'web-1 down', prometheus, group('a', 'b'), group('c')],
      [
        hash,
        '1795231211 db-1: disk is full',
        log('2026-11-21T03:20:11.123Z'),
        log('2026-11-22 04:20:11+01:00'),
        log('Sat, 21 Nov 2026 03:20:11'),
        log('1795231211'),
      ],
      [hash, 'memory is full', log('1795231211', 'memory')],
      [
        hash,
        'at=2026-11-22',
        'at=2026-11-21T03%3A20%3A11Z&x=1',
        'at=2026-11-22T03%3A20%3A12Z&x=1',
      ],
      // A number alone is no key, however it is written.
      [hash, '"n":1}', '{"id":7,"n":1}'],
      [hash, '"n":2}', '{"id":7,"n":2}'],
      [hash, '"n":3}', '{"id":" 7 ","n":3}'],
      [hash, '"n":4}', '{"alert_id":"7","n":4}'],
      [hash, 'monitor', '{"monitor":{"id":3}}'],
      ['9c1f', '"n":2', '{"id":"9c1f","n":1}', '{"id":"9c1f","n":2}'],
      [
        'k',
        '"id":8',
        '{"dedup_key":"k","id":8}',
        '{"dedup_key":"k","id":9}',
        '{"dedup_key":"k","id":8}',
      ],
      [
        'Q2AIXW2ZIWCI5K',
        '"number":7',
        '{"event":{"data":{"id":"note","incident":{"id":"Q2AIXW2ZIWCI5K"}}}}',
        '{"event":{"data":{"id":"Q2AIXW2ZIWCI5K","type":"incident","number":7}}}',
      ],
      [hash, 'cpu at 9:05', 'cpu at 10:40', 'cpu at 10:41 pm', 'cpu at 9:05'],
      [hash, 'x=cpu%20at%207%3A05&y', 'x=cpu%20at%2010%3A40&y', 'x=cpu%20at%207%3A05&y'],
      [
        hash,
        'Nov 2 04:20:11 db-1: slow',
        'Nov 21 03:20:11 db-1: slow',
        'Nov  2 04:20:11 db-1: slow',
      ],
      [hash, 'on 2 Nov 2026', 'on 21 Nov 2026', 'on 2 Nov 2026'],
      // None of these is a time.
      ...['host-1:40', 'host-1:41', 'fe80::10:40', 'fe80::10:41'].map((what) => {
        return [hash, `${what} is down`, `${what} is down`] as const
      }),
      [hash, 'the key is «redacted»', `{"text":"the key is ${CHAT_KEY}"}`],
      // The title is cut within the key.
      [hash, `${long}«redacted»`, `{"text":"${long}${CHAT_KEY}"}`],
      [hash, `${plain}«redacted»`, `${plain}${CHAT_KEY}`],
    ]
    for (const [, , ...bodies] of alerts) {
      for (const body of bodies) {
        t.equal((await deliverAlert(ops.base, body)).status, 502, 'kept without a model')
      }
    }
    const rows = await ops.query(
      `select a.*, t.title, t.payload
         from ops.alerts a join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
        where a.id > $1
        order by a.id`,
      [Number(last?.['id'])],
    )
    t.match(
      rows.map(({ fingerprint, title, count }) => [fingerprint, title, count]),
      alerts.map(([fingerprint, title, ...bodies]) => [fingerprint, title, bodies.length]),
    )
    t.equal(rows.length, alerts.length)
    for (const { first_seen, last_seen, count } of rows) {
      t.ok(Number(last_seen) >= Number(first_seen))
      if (count === 1) t.same(last_seen, first_seen)
    }
    t.notMatch(JSON.stringify(rows), CHAT_KEY.slice(0, 8))

    const id = String(rows.find(({ fingerprint }) => fingerprint === 'k')?.['id'])
    const list = await ops.page('/alerts')
    t.match(list, `href="/alerts/${id}"`, 'the list leads to them')
    t.match(list, '; 2 different texts')
    const page = await ops.page(`/alerts/${id}`)
    for (const text of ['&quot;id&quot;:8}', '&quot;id&quot;:9}', '2 times', 'once']) {
      t.match(page, text, 'each text is shown')
    }
  })
})

await onPostgres(t, 'a delivery that starts a session', async (t, backend) => {
  const [gate, briefs] = [await startGate(t), await startBriefs(t)]
  const env = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, ...briefs.env }
  const ops = await startOps(t, backend, env)
  await gate.pass()
  await ended(ops)

  const alert = sample('alertmanager-v4-firing.json')
  const { json: taken } = await deliverAlert(ops.base, alert)
  acknowledged(t, await deliverAlert(ops.base, alert), 'the same alert while its session runs')
  t.equal(briefs.asked.length, 1, 'the model was asked once')
  await gate.pass()
  await ended(ops, taken.session_id ?? 0)

  // Another one begins while the model writes.
  const release = briefs.hold()
  const late = deliverAlert(ops.base, 'The backup failed')
  await until(() => briefs.asked.length === 2, 'the model to be asked')
  const other = await trigger(ops)
  release('Too late.')
  acknowledged(t, await late, 'a session started meanwhile')
  gate.open()
  await ended(ops, other.id)
  const rows = await ops.query(
    `select title, payload, a.count, outcome,
            (select max(s.id)::int from ops.sessions s where s.alert_id = a.id) as session_id
       from ops.alerts a join ops.alert_texts t on t.alert_id = a.id order by id`,
  )
  t.match(rows, [
    { payload: alert, count: 2, session_id: taken.session_id },
    { title: 'The backup failed', count: 1, outcome: 'acknowledged', session_id: null },
  ])
})
