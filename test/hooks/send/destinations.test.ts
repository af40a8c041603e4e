import { verify } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import { t, type Test } from 'tap'
import { apiOf } from '../../helpers/api.ts'
import { postgres } from '../../helpers/backends.ts'
import {
  addDestination,
  destination,
  eventOf,
  listed,
  retry,
  untilListed,
} from '../../helpers/destinations.ts'
import {
  accepted,
  SECRETS,
  addProvider,
  deliver,
  eventIds,
  post,
  postForm,
  refusals,
  startHooks,
  store,
} from '../../helpers/hooks.ts'
import { request } from '../../helpers/http.ts'
import { attemptsOf, replay, startReceiver, type Answer } from '../../helpers/replays.ts'
import { addSigned, secretKey, sendStandard } from '../../helpers/senders.ts'
import { startServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'

/** Seconds between one try and the next; a wait is up to a fifth longer. */
const WAITS = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]
/** What a slow machine may add between the end of an attempt and its record. */
const SLACK_S = 10
/** Requests to one destination that an instance has under way at a time. */
const AT_A_TIME = 64
/** What the health probe says while one is disabled. */
const DISABLED = ['disabled after failures: 1 destination']

const variables = { HOOKS_REPLAY_TARGETS: '127.0.0.1', GATEHOUSE_SECRET_KEY: secretKey() }
const { base, env, server } = await startHooks(t, postgres, variables)
const api = apiOf(base)
const query = postgres.query.bind(undefined, env)
await addProvider(base, 'lan', { open: true })
let answer: Answer
const receiver = await startReceiver(t, (got, response) => answer(got, response))

/** From now on the receiver keeps its answers back; gives what sends each. */
function holding() {
  const held: (() => void)[] = []
  answer = (_, response) => void held.push(() => response.writeHead(204).end())
  return held
}

/** From now on the receiver gives this answer. */
function answering(status: number, headers: Record<string, string> = {}) {
  answer = (_, response) => void response.writeHead(status, headers).end('an answer\0')
}

/** Adds a destination whose path at the receiver is its name; it goes with the test. */
function add(t: Test, name: string, members = {}) {
  t.teardown(() => api('DELETE', `/destinations/${name}`))
  return addDestination(base, name, `${receiver.url}/${name}`, members)
}

const enable = (name: string, enabled = true) =>
  api('PUT', `/destinations/${name}/enabled`, { enabled })

const got = (name: string) =>
  receiver.received.filter(({ path }) => path.split('?')[0] === `/${name}`)

/** The ids of the events that a destination got, in the order in which they came. */
const idsOf = (name: string) => got(name).map(eventOf)

const send = (body = '{}', type = 'none', provider = 'lan') =>
  store(base, provider, body, { 'X-Event-Type': type })

function sorted(ids: readonly number[]) {
  return ids.toSorted((a, b) => a - b)
}

function logged(message: string) {
  return server
    .logs()
    .map((line) => JSON.parse(line) as { msg: string })
    .filter(({ msg }) => msg === message)
}

/** Waits until the health probe gives these reasons. */
const untilHealth = (reasons: readonly string[] | undefined) =>
  until(
    async () => {
      const { json } = await request(`${base}/healthz`)
      return String(json<{ reasons?: unknown }>().reasons) === String(reasons)
    },
    `health with ${String(reasons)}`,
  )

/** Gives a destination another address, past the check of addresses: its name leads elsewhere now. */
function move(name: string, url: string) {
  const moved = 'update hooks.destinations set url = $2 where name = $1 returning name'
  const text = `with moved as (${moved}) select pg_notify('hooks_config', '') from moved`
  return query(text, [name, url])
}

/** Waits for so many tries of a delivery; gives the seconds from its newest attempt to the next one. */
async function untilTried(name: string, id: number, tries: number) {
  const found = await until(async () => {
    const [row] = await query(
      `select o.tries, extract(epoch from o.next_at - d.last_at)::float8 as wait
         from hooks.destination_deliveries o
         join hooks.destinations d on d.name = o.destination
        where o.destination = $1 and o.event_id = $2 and o.claimed_until is null`,
      [name, id],
    )
    return row?.['tries'] === tries && row
  }, `try ${tries} of event ${id}`)
  return found['wait'] as number | null
}

/** Sends events whose deliveries are given up: the last of their tries is made at once. */
async function sendDead(name: string, types: readonly string[]) {
  answering(503, { 'Retry-After': '3600' })
  const ids: number[] = []
  for (const type of types) ids.push(await send('{}', type))
  for (const id of ids) await untilTried(name, id, 1)
  const last = `update hooks.destination_deliveries set tries = 7 where destination = $1 and event_id >= $2`
  await query(last, [name, ids[0] ?? 0])
  await retry(base, name, { events: ids })
  for (const id of ids) await untilTried(name, id, 8)
  return ids
}

await t.test('each event from now on comes signed, with its id in the key', async (t) => {
  answering(204)
  await deliver(base, 'code_host', '{"before": true}')
  const added = await destination(env, 'add', 'all', `${receiver.url}/all?token=geheim`)
  t.match(added, { code: 0, stderr: 'all gets the events from now on\n' })
  const ids: number[] = []
  for (let n = 0; n < 3; n++) {
    const headers = { 'X-GitHub-Event': 'push', 'X-GitHub-Delivery': `all-${n}` }
    ids.push(await accepted(deliver(base, 'code_host', `{"n": ${n}}`, headers)))
  }
  await untilListed(base, 'all', { delivered: 3, waiting: 0, dead: 0, last_status: 204 })
  t.same(sorted(idsOf('all')), ids)
  for (const { body, headers, ...line } of got('all')) {
    const signature = String(headers['x-hub-signature-256'])
    t.ok(await verify(SECRETS.code_host, body.toString(), signature))
    t.match(line, { path: '/all?token=geheim', method: 'POST' })
    t.match(headers, { 'x-github-event': 'push' })
  }
  t.match(await attemptsOf(base, ids[0] ?? 0), [
    { outcome: 'delivered', kind: 'destination', target: `${receiver.url}/all?token=«redacted»` },
  ])
  t.notMatch((await destination(env, 'list')).stdout, 'geheim')
  t.match(await destination(env, 'remove', 'all'), { code: 0, stderr: 'all is removed\n' })
})

await t.test('filters: providers, types with * and members of the body', async (t) => {
  for (const name of ['wan', 'man']) await addProvider(base, name, { open: true })
  const rows: readonly (readonly [string, object, readonly string[]])[] = [
    ['providers', { providers: ['generic:lan', 'generic:wan'] }, ['invoice.paid', 'push']],
    ['one', { providers: ['generic:lan'], provider: 'generic:man' }, ['Push', 'invoice.paid']],
    ['types', { event_types: ['Invoice.*', 'push'] }, ['invoice.paid', 'push']],
    ['type', { event_type: 'push' }, ['push']],
    ['members', { json: ['a.0.b=1', 'c=x'] }, ['invoice.paid']],
    ['member', { json: 'a.0.b=1' }, ['invoice.paid', 'push']],
    [
      'every',
      { providers: 'generic:lan\ngeneric:man', event_types: ['*'] },
      ['Push', 'invoice.paid'],
    ],
    ['none', { provider: 'chat' }, []],
  ]
  for (const [name, filters] of rows) await add(t, name, filters)
  await send('{"a":[{"b":1}],"c":"x"}', 'invoice.paid')
  await send('{"a":[{"b":1}]}', 'push', 'wan')
  await send('no JSON, but "c" = "x"', 'Push', 'man')
  for (const [name, , types] of rows) {
    await untilListed(base, name, { delivered: types.length, waiting: 0 })
    const came = got(name).map(({ headers }) => headers['x-event-type'])
    t.same(came.toSorted(), types.toSorted(), name)
  }
})

await t.test('since: the events from one on, or from a time on', async (t) => {
  const ids = [await send(), await send()]
  const since = ['--since', String(ids[0])]
  const { stderr } = await destination(env, 'add', 'late', `${receiver.url}/late`, ...since)
  t.equal(stderr, `late gets the events from ${ids[0]} on\n`)
  await untilListed(base, 'late', { delivered: 2 })
  await add(t, 'old', { since: '2020-01-01', providers: ['generic:man', 'generic:wan'] })
  await untilListed(base, 'old', { delivered: 2 })
  // Back to the first event: all of them come again.
  t.match(await destination(env, 'set', 'late', ...since), { code: 0 })
  await untilListed(base, 'late', { delivered: 4 })
  t.same(sorted(idsOf('late')), [ids[0], ids[0], ids[1], ids[1]])
  await destination(env, 'remove', 'late')
})

await t.test('ordered: one that fails holds up those behind it', async (t) => {
  answering(503)
  await add(t, 'row', { ordered: true })
  const ids = [await send(), await send(), await send(), await send(), await send()]
  await untilListed(base, 'row', { waiting: 5, last_status: 503 })
  t.same(new Set(idsOf('row')), new Set(ids.slice(0, 1)), 'only the first one was sent')
  answering(200)
  const failed = got('row').length
  await retry(base, 'row')
  await untilListed(base, 'row', { delivered: 5, waiting: 0 })
  t.same(idsOf('row').slice(failed), ids)
})

await t.test('eight tries, each later than the one before, then dead', async (t) => {
  answering(500)
  await add(t, 'slow')
  const id = await send()
  for (const [at, least] of WAITS.entries()) {
    const wait = (await untilTried('slow', id, at + 1)) ?? 0
    t.ok(wait >= least && wait <= least * 1.2 + SLACK_S, `${wait} s after ${at + 1}`)
    await retry(base, 'slow')
  }
  await untilListed(base, 'slow', { waiting: 0, dead: 1, delivered: 0, last_status: 500 })
  t.equal(await untilTried('slow', id, 8), null)
  const attempts = await attemptsOf(base, id)
  t.equal(attempts.length, 8)
  const kept = attempts.filter(({ body }) => body === 'an answer\u{FFFD}')
  t.same(kept, attempts, 'why a try failed may stand in its answer')

  answering(200)
  t.same(await retry(base, 'slow'), { retried: 0 })
  t.same(await retry(base, 'slow', { dead: true, since: String(id + 1) }), { retried: 0 })
  const last = await destination(env, 'retry', 'slow', '--dead', '--since', String(id))
  t.equal(last.stderr, '1 delivery is tried again\n')
  await untilListed(base, 'slow', { waiting: 0, dead: 0, delivered: 1 })
})

await t.test('Retry-After makes a wait longer, never shorter', async (t) => {
  await add(t, 'busy')
  const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
  for (const [header, least, most] of [
    ['120', 120, 120],
    [inAnHour, 3_590 - SLACK_S, 3_601],
    ['1', 5, 6],
    ['9999999', 86_400, 86_400],
    ['soon', 5, 6],
    ['-5', 5, 6],
  ] as const) {
    answering(503, { 'Retry-After': header })
    const wait = await untilTried('busy', await send(), 1)
    t.ok(wait !== null && wait >= least && wait <= most + SLACK_S, `${header}: ${wait} s`)
  }
})

await t.test('410 disables at once; an address that became private is tried again', async (t) => {
  answering(410)
  await add(t, 'gone')
  const id = await send()
  const gone = { waiting: 0, dead: 1, last_status: 410, disabled_by: 'failures' }
  await untilListed(base, 'gone', gone)
  t.match(await attemptsOf(base, id), [{ outcome: 'failed', answer: /^410 / }])
  await untilHealth(DISABLED)
  t.match(await enable('gone'), { status: 200, json: { disabled_by: null } })
  answering(204)
  await move('gone', 'http://[::1]:9/')
  const next = await until(async () => {
    const event = await send()
    const attempt = await until(async () => (await attemptsOf(base, event))[0], 'an attempt')
    return attempt.outcome === 'refused' && attempt
  }, 'the new address to be known')
  t.match(next.detail, /not on the public internet; an operator can allow it in HOOKS_REPLAY/)
  const refused = await untilListed(base, 'gone', { waiting: 1, dead: 1, last_status: null })
  await move('gone', receiver.url)
  await until(async () => {
    await retry(base, 'gone')
    return (await listed(base, 'gone')).waiting === 0
  }, 'what was refused to arrive')
  t.match(await listed(base, 'gone'), { dead: 1, delivered: refused.delivered + 1 })
})

await t.test('an attempt that breaks is a failed try; what came meanwhile is sent', async (t) => {
  answering(204)
  await add(t, 'torn')
  const disabled = await destination(env, 'disable', 'torn')
  t.match(disabled, { code: 0, stderr: 'torn is disabled\n' })
  const [torn, whole] = [await send(), await send()]
  t.match(await listed(base, 'torn'), { delivered: 0, waiting: 0, disabled_by: 'operator' })
  await query(`update hooks.events set headers = 'torn' where id = $1`, [torn])
  await destination(env, 'enable', 'torn')
  await untilListed(base, 'torn', { waiting: 1, delivered: 1, disabled_by: null })
  await untilTried('torn', torn, 1)
  t.match(logged('delivery broke')[0], { destination: 'torn', event: torn })
  const kept = `select outcome, detail from hooks.attempts where event_id = $1`
  t.match(await query(kept, [torn]), [
    { outcome: 'failed', detail: /^a defect of Gatehouse; the line "delivery broke"/ },
  ])
  t.match(await attemptsOf(base, whole), [{ outcome: 'delivered' }])
  await query(`update hooks.events set headers = '[]' where id = $1`, [torn])
  await retry(base, 'torn')
  await untilListed(base, 'torn', { waiting: 0, delivered: 2 })
})

await t.test('twenty dead in a row disable it and raise an alarm', async (t) => {
  const many = Array.from({ length: 19 }, () => 'many')
  await untilHealth(undefined)
  const before = [logged('alarm').length, logged('alarm ended').length] as const
  await add(t, 'broken')
  await sendDead('broken', many)
  await untilListed(base, 'broken', { dead: 19, disabled_by: null })
  answering(204)
  await send()
  await untilListed(base, 'broken', { delivered: 1 })
  await sendDead('broken', ['again'])
  await untilListed(base, 'broken', { dead: 20, disabled_by: null })
  await untilHealth(undefined)
  await query('update hooks.destinations set dead_in_row = 19')
  await sendDead('broken', ['last'])
  await untilListed(base, 'broken', { dead: 21, disabled_by: 'failures' })
  await untilHealth(DISABLED)
  const dashboard = (await request(`${base}/`)).text
  t.match(dashboard, /1 destination failing[\s\S]*<li>.*broken<\/a>: disabled after failures;/)
  t.match((await destination(env, 'list')).stdout, /broken +disabled by failures/)
  await until(() => logged('alarm').length > before[0], 'the line of the alarm')

  answering(204)
  await send()
  await retry(base, 'broken', { dead: true })
  t.match(await listed(base, 'broken'), { waiting: 21, delivered: 1 }, 'nothing goes out yet')
  await enable('broken')
  await untilListed(base, 'broken', { waiting: 0, dead: 0, delivered: 23, disabled_by: null })
  await untilHealth(undefined)
  await until(() => logged('alarm ended').length > before[1], 'its line')
})

await t.test('what is owed is listed with its last answers, and tried again', async (t) => {
  type Page = { deliveries: readonly { event_id: number }[]; next_cursor: string | null }
  const list = async (query = '') =>
    (await api<Page>('GET', `/destinations/owing/deliveries${query}`)).json
  const eventsOf = ({ deliveries }: Page) => deliveries.map(({ event_id }) => event_id)
  // Without Retry-After, those with 503 would be tried again after 5 s.
  answering(503, { 'Retry-After': '3600' })
  await add(t, 'owing')
  const late = [await send('{}', 'late'), await send(), await send()]
  await untilListed(base, 'owing', { waiting: 3, last_status: 503 })
  await until(() => got('owing').length === 3, 'the first tries')
  const dead = await sendDead('owing', ['gone', 'second', 'third'])
  await untilListed(base, 'owing', { waiting: 3, dead: 3 })

  const waiting = await list()
  t.same(eventsOf(waiting), late)
  const state = { state: 'waiting', event_type: 'late', tries: 1, last_status: 503 }
  t.match(waiting.deliveries[0], { ...state, next_at: /^\d{4}-/, last_at: /^\d{4}-/ })
  const gone = await list('?state=dead&limit=2')
  t.same(eventsOf(gone), dead.slice(0, 2))
  t.match(gone.deliveries[0], { state: 'dead', next_at: null, last_status: 503 })
  const rest = await list(`?state=dead&limit=2&cursor=${gone.next_cursor ?? ''}`)
  t.same([eventsOf(rest), rest.next_cursor], [dead.slice(2), null])
  const ofCommand = (await destination(env, 'deliveries', 'owing', '--dead')).stdout
  t.match(ofCommand, /gone +8 +given up +503, /)

  answering(204)
  const [first, second, third] = dead
  t.same(await retry(base, 'owing', { events: [] }), { retried: 0 })
  t.same(await retry(base, 'owing', { events: [first] }), { retried: 1 })
  await untilListed(base, 'owing', { delivered: 1, dead: 2, waiting: 3 })
  const { stderr } = await destination(env, 'retry', 'owing', '--event', String(second))
  t.equal(stderr, '1 delivery is tried again\n')
  t.same(await retry(base, 'owing'), { retried: 3 })
  t.same(await retry(base, 'owing', { events: [third] }), { retried: 1 })
  await untilListed(base, 'owing', { delivered: 6, dead: 0, waiting: 0 })
  t.same(await list(), { deliveries: [], next_cursor: null })
})

await t.test('what is being sent when it is disabled is sent, and counts', async (t) => {
  const held = holding()
  await add(t, 'held')
  await send()
  await until(() => held.length === 1, 'the event to be sent')
  await enable('held', false)
  held[0]?.()
  await untilListed(base, 'held', { delivered: 1, waiting: 0 })
  t.equal(got('held').length, 1)
})

await t.test('the key of a delivery is that of its event and this installation', async (t) => {
  const elsewhere = await startHooks(t, postgres, variables)
  await addProvider(elsewhere.base, 'lan', { open: true })
  await addDestination(elsewhere.base, 'keys', `${receiver.url}/keys`)
  const keys = () => got('keys').map(({ headers }) => String(headers['idempotency-key']))
  answering(500)
  await add(t, 'keys')
  const id = await send()
  await untilListed(base, 'keys', { waiting: 1, last_status: 500 })
  answering(204)
  await retry(base, 'keys')
  await untilListed(base, 'keys', { delivered: 1 })
  t.equal(keys()[1], keys()[0], 'a repeat has the key of its first try')
  // As if a backup had been restored, whose next event gets an id that was used before.
  const owe = `insert into hooks.destination_deliveries (destination, event_id, next_at)
               values ('keys', $1, now()) on conflict do nothing`
  const time = `update hooks.events set received_at = '2026-01-02' where id = $1`
  await query(time, [id])
  await query(owe, [id])
  await untilListed(base, 'keys', { delivered: 2 })
  // An event with the same id and time in another installation, which may have planned it by itself.
  const insert = `insert into hooks.events (id, provider, trust, headers, payload, received_at)
                  overriding system value values ($1, 'generic:lan', 3, '[]', '{}', '2026-01-02')`
  await postgres.query(elsewhere.env, insert, [id])
  await postgres.query(elsewhere.env, owe, [id])
  await untilListed(elsewhere.base, 'keys', { delivered: 1 })
  t.equal(new Set(keys()).size, 3, 'another event or installation has another key')

  const signing = await addSigned(base, 'shop')
  await sendStandard(base, 'shop', signing, '{}', { id: 'msg_1' })
  await untilListed(base, 'keys', { delivered: 3 })
  const { headers = {}, body = '' } = got('keys').at(-1) ?? {}
  t.equal(headers['webhook-id'], headers['idempotency-key'], 'signed with this key')
  t.ok(new Webhook(signing).verify(body, headers as Record<string, string>))
})

await t.test('of the attempts of an event about the newest 200 are kept', async (t) => {
  answering(204)
  await add(t, 'kept')
  const ids = sorted(await Promise.all(Array.from({ length: 32 }, () => send())))
  const range = [ids[0] ?? 0, ids.at(-1) ?? 0]
  await untilListed(base, 'kept', { delivered: 32 })
  await query(
    `insert into hooks.attempts (event_id, kind, target, outcome, ms, at)
     select id, 'destination', 'http://10.0.0.1/', 'failed', 0, now()
       from hooks.events, generate_series(1, 250) where id between $1 and $2`,
    range,
  )
  const again = `insert into hooks.destination_deliveries (destination, event_id, next_at)
                 select 'kept', id, now() from hooks.events where id between $1 and $2
                     on conflict do nothing`
  const fewer = `select event_id::int as id, count(*)::int as n from hooks.attempts
                  where event_id between $1 and $2 group by 1 having count(*) < 240`
  // Surplus attempts are looked for by chance: at one delivery in 16.
  const [one] = await until(async () => {
    await query(again, range)
    const rows = await query(fewer, range)
    return rows.length > 0 && rows
  }, 'surplus attempts to go')
  t.ok(Number(one?.['n']) >= 200, `${one?.['n']} are kept`)
  t.match(await attemptsOf(base, Number(one?.['id'])), [{ outcome: 'delivered' }], 'the newest')
})

await t.test('/destinations/new is the form, unless a destination has that name', async (t) => {
  const pageOf = async () => (await request(`${base}/destinations/new`)).text
  t.match(await pageOf(), /<title>Add a destination/)
  await add(t, 'new', { event_type: 'never' })
  t.match(await pageOf(), /<title>new/)
})

await t.test('a delivery that comes back is stored once', async (t) => {
  await addProvider(base, 'back', { open: true })
  await addDestination(base, 'loop', `${base}/webhooks/generic/back`)
  const id = await send()
  const refused = await until(async () => (await attemptsOf(base, id + 1))[0], 'the second one')
  const body = /was sent from here twice already/
  t.match(refused, { outcome: 'failed', answer: /^403 /, body })
  t.equal((await attemptsOf(base, id))[0]?.outcome, 'delivered', 'once is no loop')
  t.match((await eventIds(base)).slice(0, 2), [id + 1, id])
  const reason = /^a loop: it was sent from here twice/
  await until(
    async () => (await refusals(base)).some((row) => reason.test(row.reason)),
    'the refused delivery in the list',
  )
  await api('DELETE', '/destinations/loop')

  const other = await store(base, 'lan', '{}', { 'CDN-Loop': 'cdn.test; a="b"' })
  await replay(base, other, `${receiver.url}/passed-on`)
  const loop = String(got('passed-on')[0]?.headers['cdn-loop'])
  t.match(loop, /^cdn\.test; a="b", gatehouse-[0-9a-f]{24}$/, 'behind those before')
  const own = loop.split(', ')[1] ?? ''
  for (const [given, status] of [
    [own, 202],
    [`${own}0, ${own}, a`, 202],
    [`${own}, a;b=c,${own};d`, 403],
  ] as const) {
    const { status: found } = await post(base, 'generic/lan', '{}', { 'CDN-Loop': given })
    t.equal(found, status, given)
  }
  const signed = await deliver(base, 'code_host', '{}', { 'CDN-Loop': `${own}, ${own}` })
  t.equal(signed.status, 403, 'a signed receiver refuses it, too')
})

await t.test('several instances share the work', async (t) => {
  const second = await startServer(t, { services: ['hooks'], env })
  const bases = [base, second.hooks]
  /** Sends so many events, to the instances in turn; gives their ids. */
  async function sendAll(count: number) {
    const sent = Array.from({ length: count }, (_, n) => store(bases[n % 2] ?? '', 'lan'))
    return sorted(await Promise.all(sent))
  }

  await t.test('each delivery is sent once', async (t) => {
    const held = holding()
    // A request that is held must not time out meanwhile: it would be sent again.
    await add(t, 'shared', { timeout_s: 30 })
    const ids = await sendAll(150)
    await until(() => held.length > AT_A_TIME, 'each instance to send')
    answering(204)
    for (const release of held) release()
    await untilListed(base, 'shared', { delivered: 150, waiting: 0 })
    t.same(sorted(idsOf('shared')), ids, 'each one came once')
    for (const base of bases) {
      const { text } = await request(`${base}/metrics`)
      const line = /_attempts_total\{destination="shared",outcome="delivered"\} (\d+)/
      t.ok(Number(line.exec(text)?.[1]) > 0, 'each instance has sent some')
    }
  })

  await t.test('a result does not count when another has claimed the delivery', async (t) => {
    const held = holding()
    await add(t, 'claimed')
    await send()
    await until(() => held.length === 1, 'the first request')
    const claim = `update hooks.destination_deliveries set claimed_until = now() + interval '1 s'
                    where destination = 'claimed'`
    await query(claim)
    held[0]?.()
    await until(() => held.length === 2, 'the delivery to be due when that claim lapses')
    held[1]?.()
    await untilListed(base, 'claimed', { delivered: 1, waiting: 0 })
  })

  await t.test('a rate is one bound for all', async (t) => {
    answering(204)
    await add(t, 'rated', { rate: '20/s' })
    await enable('rated', false)
    await sendAll(60)
    // As if the clock had been set back by an hour: rate is used up to a later time than now.
    const [begin] = await query(`with stepped as (
         update hooks.destinations set paid_until = now() + interval '1 hour' where rate = 20
       )
       select now()::text as at`)
    await enable('rated')
    await untilListed(base, 'rated', { delivered: 60 })
    // Of the 3 s that 60 take, a tenth of a second was left at the start.
    const [paid] = await query(
      `select paid_until - $1::timestamptz >= interval '2.9 s' as fully
         from hooks.destinations where rate = 20`,
      [String(begin?.['at'])],
    )
    t.same(paid, { fully: true }, 'each delivery uses the rate, whoever sends it')
  })
  await second.stop()
})

await t.test('retention spares what is owed for seven days, then names the gap', async (t) => {
  /** Keeps one event, if no destination needs more. */
  const prune = () => postForm(base, '/settings', { retention_max_rows: '1' })
  const left = (count: number, what: string) =>
    until(async () => (await eventIds(base)).length === count, what)
  answering(500)
  await add(t, 'owed')
  const ids = [await send(), await send(), await send()]
  await untilListed(base, 'owed', { waiting: 3 })
  await enable('owed', false)
  await enable('owed')
  await prune()
  await left(3, 'those before to be removed')
  t.same((await eventIds(base)).toReversed(), ids, 'all are spared')
  const age = `update hooks.events set received_at = now() - interval '8 days' where id <= $1`
  await query(age, [ids[1] ?? 0])
  await prune()
  await left(1, 'the old ones to be removed')
  t.match(await listed(base, 'owed'), { waiting: 1, gap: 2, gap_through: ids[1] })
  const gap = 'events removed before they were delivered'
  const [line] = await until(() => logged(gap).length > 0 && logged(gap), 'the line of the gap')
  t.match(line, { destination: 'owed', events: 2, through: ids[1] })

  await enable('owed', false)
  const last = [await send(), await send()]
  await prune()
  await left(1, 'a disabled one to spare nothing')
  t.match(await listed(base, 'owed'), { waiting: 0, gap: 4, gap_through: last[0] })
  answering(200)
  await enable('owed')
  await untilListed(base, 'owed', { delivered: 1, waiting: 0 })
})

// From here on other processes run.
await t.test('a restart goes on where the last process was', async (t) => {
  answer = () => undefined
  await addDestination(base, 'again', `${receiver.url}/again`)
  const first = await send()
  await until(() => got('again').length === 1, 'a request that the stop cuts')
  await server.stop()
  answering(204)
  const next = await startServer(t, { services: ['hooks'], env })
  const id = await store(next.hooks, 'lan')
  await untilListed(next.hooks, 'again', { delivered: 2 })
  t.same(sorted(idsOf('again')), [first, first, id])
  const names = new Set(got('again').map(({ headers }) => headers['cdn-loop']))
  t.equal(names.size, 1, 'it is still the same installation')
  const outcomes = (await attemptsOf(next.hooks, first)).map(({ outcome }) => outcome)
  t.same(outcomes, ['delivered'], 'what was cut is no failure')
  await destination(env, 'remove', 'again')
  await next.stop()
})

await t.test('a large backlog is retried in steps, and removed unseen', async (t) => {
  // Nobody but the commands works on it. Every second delivery is dead.
  const owe = `insert into hooks.destination_deliveries (destination, event_id, tries, next_at)
               select 'big', id, 1, case when id % 2 = 0 then now() + interval '1 hour' end
                 from generate_series(1000001, 1009001) id`
  await destination(env, 'add', 'big', receiver.url)
  await query(owe)
  const retry = async (...flags: readonly string[]) =>
    (await destination(env, 'retry', 'big', ...flags)).stderr
  t.match(await retry('--since', '1009000'), /^1 delivery is tried again/)
  t.match(await retry(), /^4499 deliveries are tried again/)
  t.match(await retry('--dead', '--since', '1000002'), /^4500 deliveries are tried again/)
  t.match(await retry('--dead'), /^1 delivery is tried again/)
  const list = async () => (await destination(env, 'list', '--json')).stdout
  t.match(JSON.parse(await list()), [{ name: 'big', waiting: 9_001, dead: 0 }])

  t.match(await destination(env, 'remove', 'big'), { code: 0, stderr: 'big is removed\n' })
  t.equal(await list(), '[]\n')
  const again = () => destination(env, 'add', 'big', receiver.url)
  const taken = 'The destination "big" is still being removed; choose another name or wait.'
  t.match(await again(), { code: 1, stderr: `gatehouse: ${taken}\n` })
  for (const verb of ['enable', 'disable', 'retry', 'remove']) {
    t.match((await destination(env, verb, 'big')).stderr, /There is no destination "big"/, verb)
  }
  await startServer(t, { services: ['hooks'], env })
  await until(async () => (await again()).code === 0, 'the name to be free')
  const rest = `select from hooks.destination_deliveries where event_id > 1000000`
  t.same(await query(rest), [], 'nothing is left of its backlog')
})

await t.test('receivers that hang leave others their share', async (t) => {
  answer = ({ path }, response) => {
    if (path === '/healthy') response.writeHead(204).end()
  }
  const own = await startHooks(t, postgres, variables)
  await addProvider(own.base, 'lan', { open: true })
  await addDestination(own.base, 'healthy', `${receiver.url}/healthy`)
  await postgres.query(
    own.env,
    `with made as (
       insert into hooks.destinations
              (name, url, providers, event_types, members, ordered, timeout_s, position)
       select 'hung-' || n, $1, (case when n > 5 then '["generic:nobody"]' else '[]' end)::jsonb,
              '[]', '[]', false, 30, 0
         from generate_series(1, 40) n
     ) select pg_notify('hooks_config', '')`,
    [`${receiver.url}/hung`],
  )
  // A share of 64 MiB among 41 destinations is 4 of these bodies: without it each would have all 8. Five get events.
  const body = JSON.stringify({ padding: 'x'.repeat(512 * 1024) })
  for (let n = 0; n < 8; n++) await store(own.base, 'lan', body)
  await until(() => got('hung').length >= 5 * 4, 'each to use its share')
  await untilListed(own.base, 'healthy', { delivered: 8, waiting: 0 })
  // A slow machine may take longer than the time-outs: then the next ones are claimed.
  const claimed = `select max(rows)::int as most
                     from (select count(*) as rows from hooks.destination_deliveries
                            where claimed_until > now() and destination like 'hung-%'
                            group by destination) own`
  const [row] = await postgres.query(own.env, claimed)
  t.ok(Number(row?.['most']) <= 4, 'each its share, no more')
})
