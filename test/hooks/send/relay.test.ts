import { t, type Test } from 'tap'
import {
  openPeer,
  recorded,
  refusedUpgrade,
  startForward,
  type Peer,
  type Query,
  type ForwardedEvent,
} from '../../fixtures/forward-setup.ts'
import { backends, connectionTo } from '../../helpers/backends.ts'
import { metricOf } from '../../helpers/deliveries.ts'
import { rawExchange, request } from '../../helpers/http.ts'
import { attemptsOf, startReceiver } from '../../helpers/replays.ts'
import { startServer } from '../../helpers/server.ts'
import {
  accepted,
  SECRETS,
  SIGNED_ENV,
  addProvider,
  deliver,
  hmac,
  post,
  postForm,
  store,
  type Bytes,
} from '../../helpers/hooks.ts'
import { startTcpProxy } from '../../helpers/tcp-proxy.ts'
import { until } from '../../helpers/until.ts'

const [, backend] = backends
const TARGET = 'http://localhost:3000/hook'
const NEXT = { type: 'next' }
const MAX_FORWARDERS = 256
const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

// Two servers on one database: `base`, which may lose it, and another without secrets.
const env = { ...SIGNED_ENV, ...(await backend.env(t)) }
const url = String(env['DATABASE_URL'])
const proxy = await startTcpProxy(t, url)
const services = ['hooks'] as const
const through = { ...env, DATABASE_URL: proxy.through(url) }
const server = await startServer(t, { services, env: through })
const { hooks: base } = server
const { HOOKS_CODE_HOST_SECRET: _, ...unconfigured } = env
const { hooks: elsewhere } = await startServer(t, { services, env: unconfigured })
const query = backend.query.bind(undefined, env)
await addProvider(base, 'lan', { open: true })
await addProvider(base, 'other', { open: true })

async function metric(name: string) {
  return metricOf((await request(`${base}/metrics`)).text, name) ?? 0
}
const connected = () => metric('gatehouse_hooks_forwarders')

/** A forwarder that is connected and has not asked for anything. */
async function connect(t: Test, query: Query, at = base) {
  const peer = await openPeer(t, at, { target: TARGET, ...query })
  const ready = await peer.next<{ type: string; position: number; known: boolean }>()
  t.equal(ready.type, 'ready')
  return { ...peer, position: ready.position, known: ready.known }
}

function result(id: number, changes: Readonly<Record<string, unknown>> = {}) {
  return { type: 'result', id, status: 200, ms: 5, detail: null, done: true, ...changes }
}

/** Asks for the next event and reads it with its bytes. */
async function take(peer: Peer) {
  peer.send(NEXT)
  const event = await peer.next<ForwardedEvent>()
  return { ...event, body: event.headers === null ? undefined : await peer.next() }
}

const send = (body: Bytes, { type = 'note', provider = 'lan' } = {}) =>
  store(base, provider, body, { 'X-Event-Type': type })

await t.test('events go out in order, each when it is asked for', async (t) => {
  const before = await send('{"n":0}')
  const peer = await connect(t, { name: 'order' })
  t.equal(peer.position, before, 'a new name starts now')
  const ids = [await send('{"n":1}'), await send('{"n":2}')]
  const [first = 0, second = 0] = ids
  const { headers, ...event } = await take(peer)
  t.match(event, {
    id: first,
    provider: 'generic:lan',
    event_type: 'note',
    payload_size: 7,
    refused: null,
  })
  t.equal(String(event.body), '{"n":1}')
  t.match(headers, { 'content-type': 'application/json', 'x-event-type': 'note' })

  peer.send(result(first, { status: 503, detail: 'try\nlater', done: false }))
  t.equal((await take(peer)).id, first, 'a failed one comes again')
  peer.send(result(first, { status: 204 }))
  t.equal((await take(peer)).id, second)
  t.equal(peer.waiting(), 0, 'nothing comes unasked')
  const [attempts, path] = [await attemptsOf(base, first), TARGET]
  t.match(attempts, [
    { outcome: 'delivered', answer: /204/, target: path },
    { outcome: 'failed', detail: 'trylater', answer: /503/ },
  ])

  await t.test('a connection that ends without a result', async (t) => {
    peer.close()
    await peer.closed
    const again = await connect(t, { name: 'order', since: '1' })
    t.equal(again.position, first, 'a known name stands where it stood')
    t.equal((await take(again)).id, second)
    again.send(result(second))
    again.close()
    const third = await send('{"n":3}')
    // The result and the end came together: the result counts.
    await recorded(base, second)
    const last = await connect(t, { name: 'order' })
    t.equal(last.position, second)
    t.equal((await take(last)).id, third)
    const other = await connect(t, { name: 'other', since: String(second) })
    t.equal((await take(other)).id, second, 'another name has a place of its own')
  })
})

await t.test('a person sends an event once more', async (t) => {
  const peer = await connect(t, { name: 'once-more' })
  const id = await send('{"n":1}')
  t.equal((await take(peer)).id, id)
  peer.send(result(id))
  const again = (name: string, event = id) => postForm(base, `/log/${event}/forward`, { name })
  const waits = async () =>
    (await request(`${base}/log/${id}?tab=deliveries`)).text.includes('gets it next')
  peer.send(NEXT)
  await recorded(base, id)
  t.equal((await again('once-more')).status, 200)
  t.match(await peer.next(), { id, again: true }, 'while it waits for the next event')
  await peer.next()
  peer.send(result(id))
  const later = await send('{"n":2}')
  t.equal((await take(peer)).id, later, 'its place is the same')
  peer.send(result(later))
  await recorded(base, later)
  peer.close()
  await peer.closed

  t.equal((await again('once-more')).status, 200)
  t.ok(await waits(), 'it is away')
  const back = await connect(t, { name: 'once-more' })
  t.match(await take(back), { id, again: true }, 'when it connects')
  back.send(result(id, { status: 503, done: false }))
  t.match(await take(back), { id, again: true }, 'a failed one comes again')
  back.send(result(id))
  await until(async () => !(await waits()), 'the result')

  t.match(await again('nobody'), { status: 404, text: /There is no forwarder under this name/ })
  t.match(await again('once-more', 999_999), { status: 404 })
  t.match(await again('once\0more'), { status: 422, text: /no control characters/ })
  t.notOk(await waits())

  back.close()
  await back.closed
  // The forwarder finishes the event while a page is read. The page must have its attempt.
  const fresh = await send('{"n":3}')
  t.equal((await again('once-more', fresh)).status, 200)
  const sql = connectionTo(t, env)
  const page = await sql.begin(async (tx) => {
    await tx`lock table hooks.forwarders in access exclusive mode`
    const asked = request(`${base}/log/${fresh}?tab=deliveries`)
    const held = `select 1 from pg_stat_activity
                   where wait_event_type = 'Lock' and datname = current_database() and query like '%as waits%'`
    await until(async () => (await query(held)).length > 0, 'the page to ask for forwarders')
    await tx`update hooks.forwarders set again = '{}' where name = 'once-more'`
    const attempt = {
      n: 1,
      event_id: fresh,
      outcome: 'delivered',
      status: 200,
      ms: 5,
      at: new Date(),
    }
    await tx`select hooks.note_attempts(${tx.json([attempt])}, 'forward', ${TARGET})`
    return { asked }
  })
  t.match((await page.asked).text, 'data-outcome="delivered"')
  const many = await Promise.all(Array.from({ length: 101 }, (_, n) => send(`{"n":${n}}`)))
  const last = many.pop()
  for (const one of many) t.equal((await again('once-more', one)).status, 200)
  t.match(await again('once-more', last), { status: 409, text: /100 events wait for once-more/ })
})

await t.test('bytes and headers', async (t) => {
  const delivered = () => metric('gatehouse_hooks_forwarded_total{outcome="delivered"}')
  const before = await delivered()
  const token = await addProvider(base, 'ci')
  const peer = await connect(t, { name: 'bytes' })
  const large = Buffer.alloc(3_000_000, 'gatehouse').fill(0xff, 1_000, 2_000)
  for (const body of ['', Buffer.from([0, 255, 13, 10, 0x1b, 0]), large]) {
    const id = await send(body)
    const event = await take(peer)
    t.equal(event.id, id)
    t.ok(event.body?.equals(Buffer.from(body)), `${Buffer.from(body).length} bytes`)
    peer.send(result(id))
  }

  const secret = { Authorization: `Bearer ${token}`, 'X-Api-Key': 'k-12345678', Cookie: 'a=b' }
  const hop = {
    'X-Forwarded-For': '203.0.113.7',
    'X-Custom': 'kept',
    Referer: 'http://a/?token=x',
  }
  const ack = await post(base, 'generic/ci', '{}', { ...secret, ...hop })
  t.equal(ack.status, 202)
  const { headers, id } = await take(peer)
  const names = Object.keys(headers ?? {})
  t.same(
    names.toSorted(),
    ['cdn-loop', 'content-type', 'x-custom'],
    'no secret, nothing of the connection',
  )
  peer.send(result(id))

  const body = '{"id":"evt_9","type":"charge"}'
  const old = Math.floor(Date.now() / 1000) - 250
  t.equal((await deliver(base, 'payments', body, {}, { at: old })).status, 202)
  const signed = await take(peer)
  const value = signed.headers?.['stripe-signature'] ?? ''
  const at = Number(/^t=(\d+),/.exec(value)?.[1])
  t.ok(at > old + 200, 'the signature is of now')
  t.equal(value, `t=${at},v1=${hmac(SECRETS.payments, `${at}.`, body)}`)
  peer.send(result(signed.id))
  await until(async () => (await delivered()) === before + 5, 'five deliveries to be counted')
  // Those of the tests before may leave a moment later.
  await until(async () => (await connected()) === 1, 'one forwarder to be counted')
})

/** Ids of the events that a forwarder is given up to `last`, each answered as delivered. */
async function given(t: Test, query: Query, last: number) {
  const peer = await connect(t, query)
  const ids: number[] = []
  while (ids.at(-1) !== last) {
    const { id } = await take(peer)
    ids.push(id)
    peer.send(result(id))
  }
  peer.close()
  await peer.closed
  return ids
}

await t.test('only what is wanted', async (t) => {
  const evt = '{"data":{"object":{"id":"evt_1"}}}'
  const first = await send(evt)
  const other = await send(evt, { provider: 'other', type: 'wanted' })
  const longer = await send('{"data":{"object":{"id":"evt_10"}}}')
  const plain = await send('evt_1 stands here too', { type: 'wanted' })
  const ended = await send('{"data":{"object":{"id":"evt_1"}},"text":"the end"}')
  const since = String(first)
  const json = 'data.object.id=evt_1'
  const coalesce = 'true'
  const cases: readonly (readonly [Query, readonly number[]])[] = [
    [{ text: 'evt_1' }, [first, other, longer, plain, ended]],
    [{ event_type: 'wanted', provider: 'generic:other' }, [other]],
    [{ json }, [first, other, ended]],
    [{ json, text: 'the end', event_type: 'note' }, [ended]],
    [{ coalesce }, [ended]],
    [{ coalesce, json, provider: 'generic:other' }, [other]],
    [{ coalesce, text: 'stands here' }, [plain]],
  ]
  for (const [query, ids] of cases) {
    const name = JSON.stringify(query)
    t.same(await given(t, { name, since, ...query }, ids.at(-1) ?? 0), ids, name)
  }
  for (const [field, word] of Object.entries({ event_type: 'fresh', text: 'freshly' })) {
    const peer = await connect(t, { name: word, since, coalesce, [field]: word })
    peer.send(NEXT)
    await send('{}', { type: 'other' })
    const fresh = await send(word, { type: word })
    t.equal((await peer.next<ForwardedEvent>()).id, fresh, 'none of those that were there')
  }
  const nobody = await openPeer(t, base, { name: 'x', target: TARGET, provider: 'stripe' })
  t.match(await nobody.next(), { type: 'ready', provider_known: false })

  // Rows as the receiver stores them, so many that a search takes several steps.
  await query(
    `insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:lan', 3, '[]', convert_to('{"n":' || n || '}', 'UTF8'), now()
       from generate_series(1, 7000) as n`,
  )
  const id = await send('{"n":"needle"}', { provider: 'other' })
  const far = { name: 'far', json: 'n=needle', since: String(ended + 1) }
  t.same(await given(t, far, id), [id], 'behind many that do not match')
  // From here on the second step begins with n = 3000.
  const edge = { name: 'edge', text: '"n":300', since: String(id - 6001) }
  const around = Array.from({ length: 10 }, (_, n) => id - 4001 + n)
  t.same(await given(t, edge, id - 3992), around, 'no step leaves one out')
  const newest = { ...edge, name: 'edge newest', coalesce }
  t.same(await given(t, newest, id - 3992), [id - 3992], 'also downwards')
  const nul = await connect(t, { name: 'nul', since: '0', text: '\0' })
  nul.send(NEXT)
  t.equal((await connect(t, { name: 'nul' })).known, true)
  t.match(await nul.closed, { code: 4409 }, 'nothing else has ended it')
  t.equal(nul.waiting(), 0, 'a NUL character is in no event')
})

await t.test('a breach of the protocol ends the connection', async (t) => {
  const id = await send('{}')
  const cases: Record<string, (peer: Peer) => void> = {
    nonsense: (peer) => peer.send('{'),
    'a result of nothing': (peer) => peer.send(result(id)),
    'many questions': (peer) => [NEXT, NEXT, NEXT, NEXT].forEach(peer.send),
    'an invalid status': (peer) => peer.send(result(id, { status: 7 })),
    'a long detail': (peer) => peer.send(result(id, { detail: 'x'.repeat(1_001) })),
  }
  for (const [name, breach] of Object.entries(cases)) {
    const peer = await connect(t, { name, since: String(id) })
    breach(peer)
    t.match(await peer.closed, { code: 1008, reason: /protocol/ }, name)
  }
  const wrong = await connect(t, { name: 'wrong', since: String(id) })
  t.equal((await take(wrong)).id, id)
  wrong.send(result(id + 1))
  t.match(await wrong.closed, { code: 1008 }, 'a result of another event')
  // Without an event the first question waits, and those behind it are not looked at.
  const waits = await connect(t, { name: 'waits' })
  let code = 0
  void waits.closed.then((end) => (code = end.code))
  for (const question of [NEXT, NEXT, NEXT]) waits.send(question)
  await until(() => code !== 0, 'the end of the connection')
  t.equal(code, 1008, 'a third question while the first one waits')
  const huge = await connect(t, { name: 'huge' })
  huge.send('x'.repeat(20_000))
  t.match(await huge.closed, { code: 1009 }, 'a message over 16 KiB')
  t.same(await attemptsOf(base, id), [], 'nothing was recorded')
})

async function deliverOne(n: number) {
  return accepted(deliver(base, 'code_host', `{"n":${n}}`))
}

await t.test('a forwarder goes on at another server, and after an outage', async (t) => {
  const receiver = await startReceiver(t)
  const ids = () => receiver.received.map(({ headers }) => Number(headers['x-gatehouse-event']))
  const first = await openPeer(t, base, { name: 'moves', target: receiver.url })
  t.match(await first.next(), { type: 'ready', known: false })
  const one = await deliverOne(1)
  first.send(NEXT)
  t.equal((await first.next<ForwardedEvent>()).id, one)
  first.send(result(one))
  await recorded(base, one)
  first.close()
  const two = await deliverOne(2)

  // Server b has no secret of the code host: it refuses there, and leaves nothing out.
  const args = [receiver.url, '--name', 'moves', '--from']
  const second = startForward(t, [...args, elsewhere])
  await until(() => second.said().includes('secret of the provider'), 'the refusal')
  t.match((await recorded(base, two)).at(-1), {
    outcome: 'refused',
    detail: /cannot be signed/,
  })
  t.same(ids(), [])
  const third = startForward(t, [...args, base])
  t.same(await second.exited, { code: 1, signal: null }, 'the newer one has the name')
  t.match(second.said(), /^gatehouse: Another forwarder has connected under this name\.$/m)
  await until(() => third.lines().length === 1, 'the second event')
  t.same(ids(), [two])
  // The older forwarder may have tried once more before it went: its attempt may be the newest.
  await until(
    async () => (await recorded(base, two)).some(({ outcome }) => outcome === 'delivered'),
    'its attempt',
  )

  const idle = await openPeer(t, base, { name: 'idle', target: TARGET })
  await idle.next()
  proxy.refuse()
  proxy.reset()
  idle.send(NEXT)
  t.match(await idle.closed, { code: 1013, reason: /database is out of reach/ })
  const { status, text } = await refusedUpgrade(base, { name: 'new', target: TARGET })
  t.equal(status, 503)
  t.match(JSON.parse(text), { detail: /database is out of reach/ })
  await proxy.pass()
  const three = await until(() => deliverOne(3), 'the database to be used again', 30_000)
  await until(() => third.lines().length === 2, 'the third event', 30_000)
  t.same([...new Set(ids())], [two, three])
  t.same(await third.stop('SIGINT'), { code: 0, signal: null })
})

await t.test('a server has 256 places', async (t) => {
  const target = TARGET
  const sql = connectionTo(t, env)
  /** Connects while nobody else can read or write a table: each forwarder waits for its name. */
  const whileLocked = (work: () => Promise<unknown>) =>
    sql.begin(async (tx) => {
      await tx`lock table hooks.forwarders in access exclusive mode`
      await work()
    })
  const connects = (name: string) =>
    openPeer(t, base, { name, target }).then(
      (peer) => {
        peer.close()
        return true
      },
      () => false,
    )

  await t.test('they are counted before they have their names', async (t) => {
    await until(async () => (await connected()) === 0, 'those before to be gone')
    const peers: Peer[] = []
    let refused = 0
    const connect = (name: string) =>
      openPeer(t, base, { name, target }).then(
        (peer) => void peers.push(peer),
        (error: unknown) => {
          t.match(error, { message: /503/ })
          refused++
        },
      )
    const waiting: Promise<void>[] = []
    await whileLocked(async () => {
      for (let n = 0; n < MAX_FORWARDERS + 10; n++) waiting.push(connect(`name ${n}`))
      await until(() => refused === 10, 'those without a place to be refused')
    })
    await Promise.all(waiting)
    t.equal(peers.length, MAX_FORWARDERS)
    t.equal(await connected(), MAX_FORWARDERS)
    const { status, headers, text } = await refusedUpgrade(base, { name: 'more', target })
    t.match({ status, headers }, { status: 503, headers: { 'retry-after': '5' } })
    t.match(JSON.parse(text), { detail: /As many forwarders/ })
    peers[0]?.close()
    await until(() => connects('more'), 'the place that became free')
    for (const peer of peers) peer.close()
    await until(async () => (await connected()) === 0, 'all of them to be gone')
  })

  await t.test('clients that leave while they connect hold no place', async (t) => {
    await whileLocked(async () => {
      const address = `${base}/relay?${new URLSearchParams({ name: 'left', target }).toString()}`
      const left = Array.from({ length: MAX_FORWARDERS }, () =>
        request(address, { headers: HANDSHAKE, timeoutMs: 1_000 }),
      )
      for (const { status } of await Promise.allSettled(left)) t.equal(status, 'rejected')
    })
    await until(() => connects('stays'), 'a place for another')
  })
})

await t.test('those that filter by payload search one after the other', async (t) => {
  const id = await send('{"n":"1"}')
  await query(
    `create or replace function hooks.payload_json(payload bytea) returns jsonb
     language plpgsql immutable strict
     as $$ begin perform pg_sleep(0.3); return '{"n":"1"}'; end $$`,
  )
  const peers = await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      openPeer(t, base, {
        name: `searches ${n}`,
        target: TARGET,
        since: String(id),
        json: 'n=1',
      }),
    ),
  )
  for (const peer of peers) {
    t.match(await peer.next(), { type: 'ready' })
    peer.send(NEXT)
  }
  const sleeping = `select count(*)::int as n from pg_stat_activity
                     where datname = current_database() and wait_event = 'PgSleep'`
  let most = 0
  await until(async () => {
    const [row] = await query(sleeping)
    most = Math.max(most, Number(row?.['n']))
    return peers.every((peer) => peer.waiting() > 0)
  }, 'all of them to be given the event')
  t.equal(most, 1)
  for (const peer of peers) t.equal((await peer.next<ForwardedEvent>()).id, id)
})

await t.test('what retention removes', async (t) => {
  const ids: number[] = []
  for (let n = 0; n < 6; n++) ids.push(await send(`{"n":${n}}`))
  const [, second = 0, , fourth = 0, fifth] = ids
  t.equal((await postForm(base, '/settings', { retention_max_rows: '2' })).status, 200)
  const gone = async () => (await request(`${base}/log/${fourth}`)).status === 404
  await until(gone, 'the old ones to be removed')
  const peer = await connect(t, { name: 'late', since: String(second) })
  t.equal(peer.position, second - 1)
  peer.send(NEXT)
  t.same(await peer.next(), { type: 'gap', removed_through: fourth })
  t.equal((await peer.next<ForwardedEvent>()).id, fifth)
})

await t.test('forwarders that do not come back are forgotten after 90 days', async (t) => {
  const mine = "name in ('gone', 'idle', 'resting')"
  const names = async () =>
    (await query(`select name from hooks.forwarders where ${mine} order by name`)).map(
      ({ name }) => name,
    )
  const idle = await connect(t, { name: 'idle' })
  for (const name of ['gone', 'resting']) {
    const peer = await connect(t, { name })
    peer.close()
    await peer.closed
  }
  t.same(await names(), ['gone', 'idle', 'resting'])
  await query(`update hooks.forwarders set updated_at = now() - interval '91 days'
                where name in ('gone', 'idle')`)
  await query(`update hooks.forwarders set updated_at = now() - interval '89 days'
                where name = 'resting'`)
  await postForm(base, '/settings', { retention_max_age_days: '30' })
  await until(async () => !(await names()).includes('gone'), 'the forwarder to be forgotten')
  t.same(await names(), ['idle', 'resting'], 'one that is connected stays, however idle')
  t.equal((await connect(t, { name: 'gone' })).known, false, 'its name is new')

  const busy = await connect(t, { name: 'busy', since: '1' })
  busy.send(NEXT)
  // One keeps its connection and sends nothing, not even the answer to the closing.
  const { port, host } = new URL(base)
  const place = new URLSearchParams({ name: 'mute', target: TARGET }).toString()
  const fields = Object.entries({ Host: host, ...HANDSHAKE })
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  let open = false
  const mute = rawExchange(Number(port), `GET /relay?${place} HTTP/1.1\r\n${lines}\r\n`, {
    until: (text) => {
      open = text.includes('"ready"')
      return false
    },
  })
  await until(() => open, 'the connection')
  t.same(await server.stop(), { code: 0, signal: null })
  t.equal((await mute).closed, true, 'it delays no stop')
  for (const { closed } of [idle, busy]) {
    t.match(await closed, { code: 1001, reason: /stops/ }, 'the server stops')
  }
})
