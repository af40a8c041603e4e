import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer, recorded } from '../fixtures/forward-setup.ts'
import type { Peer, Query, ForwardedEvent } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { metricOf } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { attemptsOf } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import {
  SECRETS,
  addProvider,
  deliver,
  eventIds,
  hmac,
  post,
  postForm,
  startHooks,
} from '../helpers/hooks.ts'
import type { Ack, Bytes } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const TARGET = 'http://localhost:3000/hook'
const NEXT = { type: 'next' }

const { base, env, server } = await startHooks(t, postgres)
await addProvider(base, 'lan', { open: true })
await addProvider(base, 'other', { open: true })

/** A forwarder that is connected and has not asked for anything. */
async function connect(
  t: Test,
  query: Query,
  at = base,
): Promise<Peer & { position: number; known: boolean }> {
  const peer = await openPeer(t, at, { target: TARGET, ...query })
  const ready = await peer.next<{ type: string; position: number; known: boolean }>()
  t.equal(ready.type, 'ready')
  return { ...peer, position: ready.position, known: ready.known }
}

function result(id: number, changes: Readonly<Record<string, unknown>> = {}): unknown {
  return { type: 'result', id, status: 200, ms: 5, detail: null, done: true, ...changes }
}

/** Asks for the next event and reads it with its bytes. */
async function take(peer: Peer): Promise<ForwardedEvent & { body: Buffer | undefined }> {
  peer.send(NEXT)
  const event = await peer.next<ForwardedEvent>()
  return { ...event, body: event.headers === null ? undefined : await peer.next() }
}

async function send(body: Bytes, { type = 'note', provider = 'lan' } = {}): Promise<number> {
  const answer = await post(base, `generic/${provider}`, body, { 'X-Event-Type': type })
  return answer.json<Ack>().id
}

await t.test('events go out in order, each when it is asked for', async (t: Test) => {
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
  peer.send(result(first, { status: null, detail: 'nobody there', done: false }))
  peer.send(NEXT)
  t.equal((await peer.next<ForwardedEvent>()).id, first)
  await peer.next()
  peer.send(result(first, { status: 204 }))
  t.equal((await take(peer)).id, second)
  t.equal(peer.waiting(), 0, 'nothing comes unasked')
  const [attempts, path] = [await attemptsOf(base, first), TARGET]
  t.match(attempts, [
    { outcome: 'delivered', answer: /204/, target: path },
    { outcome: 'failed', detail: 'nobody there' },
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

await t.test('what a program answers', async (t: Test) => {
  const program = await connect(t, { name: 'program', target: 'exec:deploy.sh' })
  const id = await send('{}')
  const detail = 'the program exited with 3'
  t.equal((await take(program)).id, id)
  program.send(result(id, { status: null, exit_code: 3, detail, done: false }))
  t.equal((await take(program)).id, id, 'anything but 0 is a failure')
  program.send(result(id, { status: null, exit_code: 0 }))
  const target = 'exec:deploy.sh'
  t.match(await recorded(base, id, 2), [
    { outcome: 'delivered', answer: /^exit 0 in 5 ms$/, target },
    { outcome: 'failed', answer: 'none', detail, target },
  ])
  program.close()
  await program.closed
})

await t.test('bytes and headers', async (t: Test) => {
  const counted = async (name: string): Promise<number> =>
    metricOf((await request(`${base}/metrics`)).text, name) ?? 0
  const delivered = (): Promise<number> =>
    counted('gatehouse_hooks_forwarded_total{outcome="delivered"}')
  const before = await delivered()
  const token = await addProvider(base, 'ci')
  const peer = await connect(t, { name: 'bytes' })
  const large = Buffer.alloc(3_000_000, 'gatehouse').fill(0xff, 1_000, 2_000)
  for (const body of ['', Buffer.from([0, 255, 254, 13, 10, 0x1b, 0]), '{"é":"\r\n"}', large]) {
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
  await until(async () => (await delivered()) === before + 6, 'six deliveries to be counted')
  // Those of the tests before may leave a moment later.
  const connected = (): Promise<number> => counted('gatehouse_hooks_forwarders')
  await until(async () => (await connected()) === 1, 'one forwarder to be counted')
})

await t.test('only what is wanted', async (t: Test) => {
  const kept = await send('{}', { type: 'wanted' })
  await send('{}', { type: 'other' })
  const query = { name: 'some', provider: 'generic:lan', event_type: 'wanted', since: '1' }
  const peer = await connect(t, query)
  t.equal((await take(peer)).id, kept)
  peer.send(result(kept))
  peer.send(NEXT)
  await deliver(base, 'code_host', '{}', { 'X-CodeHost-Event': 'wanted' })
  await send('{}', { type: 'other' })
  const last = await send('{"last":true}', { type: 'wanted' })
  t.equal((await peer.next<ForwardedEvent>()).id, last)
  const nobody = await openPeer(t, base, { name: 'x', target: TARGET, provider: 'stripe' })
  t.match(await nobody.next(), { type: 'ready', provider_known: false })
})

/** Ids of the events that a forwarder is given up to `last`, each answered as delivered. */
async function given(t: Test, query: Query, last: number): Promise<readonly number[]> {
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

await t.test('what the payload must hold', async (t: Test) => {
  const first = await send('{"data":{"object":{"id":"evt_1"}}}')
  const other = await send('{"data":{"object":{"id":"evt_1"}}}', { provider: 'other' })
  const longer = await send('{"data":{"object":{"id":"evt_10"}}}')
  const plain = await send('evt_1 stands here too')
  const ended = await send('{"data":{"object":{"id":"evt_1"}},"text":"100%, the end"}')
  const since = String(first)

  await t.test('text, a member of the JSON, and both with the other filters', async (t) => {
    const cases: readonly (readonly [Query, readonly number[]])[] = [
      [{ text: 'evt_1' }, [first, other, longer, plain, ended]],
      [{ text: '%' }, [ended]],
      [{ json: 'data.object.id=evt_1' }, [first, other, ended]],
      [{ json: 'data.object.id=evt_1', provider: 'generic:lan' }, [first, ended]],
      [{ json: 'data.object.id=evt_1', text: 'the end', event_type: 'note' }, [ended]],
    ]
    for (const [query, ids] of cases) {
      const name = JSON.stringify(query)
      t.same(await given(t, { name, since, ...query }, ended), ids, name)
    }
  })

  await t.test('with coalesce the newest of them alone', async (t) => {
    const cases: readonly (readonly [Query, number])[] = [
      [{}, ended],
      [{ provider: 'generic:other' }, other],
      [{ text: 'stands here' }, plain],
      [{ json: 'data.object.id=evt_1', provider: 'generic:lan' }, ended],
    ]
    for (const [query, newest] of cases) {
      const name = `newest ${JSON.stringify(query)}`
      const coalesce = { name, since, coalesce: 'true', ...query }
      t.same(await given(t, coalesce, newest), [newest], name)
    }
    for (const filter of [{ event_type: 'fresh' }, { text: 'freshly' }]) {
      const query = { name: `fresh ${JSON.stringify(filter)}`, since, coalesce: 'true', ...filter }
      const peer = await connect(t, query)
      peer.send(NEXT)
      const [word = ''] = Object.values(filter)
      const fresh = await send(word, { type: word })
      t.equal((await peer.next<ForwardedEvent>()).id, fresh, 'none of those that were there')
    }
  })

  await t.test('a NUL character is in no event', async (t) => {
    for (const field of ['provider', 'event_type', 'text']) {
      const query = { name: `nul ${field}`, since: '0', [field]: '\0' }
      const peer = await connect(t, query)
      peer.send(NEXT)
      const newer = await connect(t, query)
      t.equal(newer.known, true)
      t.match(await peer.closed, { code: 4409 }, `${field}: nothing else has ended it`)
      t.equal(peer.waiting(), 0)
    }
  })

  await t.test('an event behind large ones', async (t) => {
    // Each is more than one step of a search reads.
    const large = [await send('x'.repeat(5_000_000)), await send('y'.repeat(5_000_000))]
    const behind = await send('{"data":{"object":{"id":"evt_1"}}}')
    const [from = 0, second = 0] = large
    const query = { since: String(from) }
    t.same(await given(t, { name: 'behind', text: 'evt_1', ...query }, behind), [behind])
    t.same(await given(t, { name: 'large', text: 'yyy', ...query }, second), [second])
  })

  await t.test('an event behind many that do not match', async (t) => {
    // Rows as the receiver stores them, so many that a search takes several steps.
    await postgres.query(
      env,
      `insert into hooks.events (provider, trust, headers, payload, received_at)
       select 'generic:lan', 3, '[]', convert_to('{"n":' || n || '}', 'UTF8'), now()
         from generate_series(1, 7000) as n`,
    )
    const id = await send('{"n":"needle"}', { provider: 'other' })
    const query = { name: 'far', json: 'n=needle', since: String(ended + 1) }
    t.same(await given(t, query, id), [id])
    // From here on the second step begins with n = 3000.
    const edge = { name: 'edge', text: '"n":300', since: String(id - 6001) }
    const around = Array.from({ length: 10 }, (_, n) => id - 4001 + n)
    t.same(await given(t, edge, id - 3992), around, 'no step leaves one out')
    const newest = { ...edge, name: 'edge newest', coalesce: 'true' }
    t.same(await given(t, newest, id - 3992), [id - 3992], 'also downwards')
  })
})

await t.test('a breach of the protocol ends the connection', async (t: Test) => {
  const id = await send('{}')
  const cases: Record<string, (peer: Peer) => void> = {
    nonsense: (peer) => peer.send('{'),
    'another type': (peer) => peer.send({ type: 'event' }),
    'a result of nothing': (peer) => peer.send(result(id)),
    'two questions': (peer) => [NEXT, NEXT].forEach(peer.send),
    'many questions': (peer) => [NEXT, NEXT, NEXT, NEXT].forEach(peer.send),
    'a result without its status': (peer) => peer.send(result(id, { status: undefined })),
    'an invalid status': (peer) => peer.send(result(id, { status: 7 })),
    'an invalid exit code': (peer) => peer.send(result(id, { exit_code: 256 })),
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

await t.test('what retention removes', async (t: Test) => {
  const ids: number[] = []
  for (let n = 0; n < 6; n++) ids.push(await send(`{"n":${n}}`))
  const [, second = 0, , fourth = 0, fifth] = ids
  t.equal((await postForm(base, '/settings', { retention_max_rows: '2' })).status, 200)
  const gone = async (): Promise<boolean> =>
    (await request(`${base}/log/${fourth}`)).status === 404
  await until(gone, 'the old ones to be removed')
  const peer = await connect(t, { name: 'late', since: String(second) })
  t.equal(peer.position, second - 1)
  peer.send(NEXT)
  t.same(await peer.next(), { type: 'gap', removed_through: fourth })
  t.equal((await peer.next<ForwardedEvent>()).id, fifth)
})

await t.test('forwarders that do not come back are forgotten after 90 days', async (t: Test) => {
  const query = (text: string) => postgres.query(env, text)
  const mine = "name in ('gone', 'idle', 'resting')"
  const names = async (): Promise<readonly unknown[]> =>
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
  const fresh = await query(`select updated_at > now() - interval '1 hour' as fresh
                               from hooks.forwarders where ${mine} order by name`)
  t.same(
    fresh.map((row) => row['fresh']),
    [true, false],
  )
  t.equal((await connect(t, { name: 'gone' })).known, false, 'its name is new')

  const busy = await connect(t, { name: 'busy', since: '1' })
  busy.send(NEXT)
  t.same(await server.stop(), { code: 0, signal: null })
  for (const { closed } of [idle, busy]) {
    t.match(await closed, { code: 1001, reason: /stops/ }, 'the server stops')
  }
  await query(`update hooks.forwarders set updated_at = now() - interval '91 days'`)
  await query(`update hooks.events set received_at = now() - interval '91 days'`)
  const { hooks } = await startServer(t, { services: ['hooks'], env })
  await until(async () => (await eventIds(hooks)).length === 0, 'the prune at the start')
  t.same(await names(), ['gone', 'idle', 'resting'], 'at the start each has time to come back')
  t.equal((await connect(t, { name: 'idle' }, hooks)).known, true)
})
