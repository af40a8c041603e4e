import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer, recorded } from '../fixtures/forward-setup.ts'
import type { Peer, Query, RelayEvent } from '../fixtures/forward-setup.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { attemptsOf } from '../helpers/replay-setup.ts'
import {
  addProvider,
  deliver,
  hmac,
  post,
  postForm,
  SECRETS,
  startHooks,
} from '../helpers/signing-setup.ts'
import type { Ack, Bytes } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const TARGET = 'http://localhost:3000/hook'
const NEXT = { type: 'next' }

/** A forwarder that connected and asked for nothing yet. */
async function connect(t: Test, base: string, query: Query): Promise<Peer & { position: number }> {
  const peer = await openPeer(t, base, { target: TARGET, ...query })
  const ready = await peer.next<{ type: string; position: number }>()
  t.equal(ready.type, 'ready')
  return { ...peer, position: ready.position }
}

function result(id: number, changes: Readonly<Record<string, unknown>> = {}): unknown {
  return { type: 'result', id, status: 200, ms: 5, detail: null, done: true, ...changes }
}

/** Asks for the next event and gives it with its bytes. */
async function take(peer: Peer): Promise<RelayEvent & { body: Buffer | undefined }> {
  peer.send(NEXT)
  const event = await peer.next<RelayEvent>()
  return { ...event, body: event.headers === null ? undefined : await peer.next() }
}

async function sendOpen(base: string, body: Bytes, type = 'note'): Promise<number> {
  const answer = await post(base, 'generic/lan', body, { 'X-Event-Type': type })
  return answer.json<Ack>().id
}

await eachBackend(
  t,
  'events go out in order, each when it is asked for',
  async (t: Test, backend) => {
    const { base, server } = await startHooks(t, backend)
    await addProvider(base, 'lan', { open: true })
    const before = await sendOpen(base, '{"n":0}')
    const peer = await connect(t, base, { name: 'order' })
    t.equal(peer.position, before, 'a new name starts now')
    const ids = [await sendOpen(base, '{"n":1}'), await sendOpen(base, '{"n":2}')]
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
    t.equal((await peer.next<RelayEvent>()).id, first)
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
      const again = await connect(t, base, { name: 'order', since: '1' })
      t.equal(again.position, first, 'a known name stands where it stood')
      t.equal((await take(again)).id, second)
      again.send(result(second))
      again.close()
      const third = await sendOpen(base, '{"n":3}')
      // The result and the end came together: the result counts.
      await recorded(base, second)
      const last = await connect(t, base, { name: 'order' })
      t.equal(last.position, second)
      t.equal((await take(last)).id, third)
      const other = await connect(t, base, { name: 'other', since: String(second) })
      t.equal((await take(other)).id, second, 'another name has a place of its own')
    })

    await t.test('the server stops', async (t) => {
      const [a, b] = [
        await connect(t, base, { name: 'a' }),
        await connect(t, base, { name: 'b', since: '1' }),
      ]
      a.send(NEXT)
      t.equal((await take(b)).id, before)
      t.same(await server.stop(), { code: 0, signal: null })
      for (const { closed } of [a, b]) t.match(await closed, { code: 1001, reason: /stops/ })
    })
  },
)

t.test('bytes and headers', async (t: Test) => {
  const { base } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  const token = await addProvider(base, 'ci')
  const peer = await connect(t, base, { name: 'bytes' })
  const large = Buffer.alloc(3_000_000, 'gatehouse').fill(0xff, 1_000, 2_000)
  for (const body of ['', Buffer.from([0, 255, 254, 13, 10, 0x1b, 0]), '{"é":"\r\n"}', large]) {
    const id = await sendOpen(base, body)
    const event = await take(peer)
    t.equal(event.id, id)
    t.ok(event.body?.equals(Buffer.from(body)), `${Buffer.from(body).length} bytes`)
    peer.send(result(id))
  }

  const secret = { Authorization: `Bearer ${token}`, 'X-Api-Key': 'k-12345678', Cookie: 'a=b' }
  const hop = { 'X-Forwarded-For': '203.0.113.7', 'X-Custom': 'kept', Referer: 'http://a/?token=x' }
  const ack = await post(base, 'generic/ci', '{}', { ...secret, ...hop })
  t.equal(ack.status, 202)
  const { headers, id } = await take(peer)
  const names = Object.keys(headers ?? {})
  t.same(names.toSorted(), ['content-type', 'x-custom'], 'no secret, nothing of the connection')
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
  const metrics = await request(`${base}/metrics`)
  t.match(metrics.text, /^gatehouse_hooks_forwarders 1$/m)
  await until(async () => {
    const { text } = await request(`${base}/metrics`)
    return text.includes('gatehouse_hooks_forwarded_total{outcome="delivered"} 6')
  }, 'six deliveries to be counted')
})

t.test('only what is wanted', async (t: Test) => {
  const { base } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  const kept = await sendOpen(base, '{}', 'wanted')
  await sendOpen(base, '{}', 'other')
  const query = { name: 'some', provider: 'generic:lan', event_type: 'wanted', since: '1' }
  const peer = await connect(t, base, query)
  t.equal((await take(peer)).id, kept)
  peer.send(result(kept))
  peer.send(NEXT)
  await deliver(base, 'code_host', '{}', { 'X-CodeHost-Event': 'wanted' })
  await sendOpen(base, '{}', 'other')
  const last = await sendOpen(base, '{"last":true}', 'wanted')
  t.equal((await peer.next<RelayEvent>()).id, last)
  const nobody = await openPeer(t, base, { name: 'x', target: TARGET, provider: 'stripe' })
  t.match(await nobody.next(), { type: 'ready', provider_known: false })
})

await eachBackend(t, 'what retention took is told', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  for (let n = 0; n < 6; n++) await sendOpen(base, `{"n":${n}}`)
  const saved = await postForm(base, '/settings', { retention_max_rows: '2' })
  t.equal(saved.status, 200)
  const gone = async (): Promise<boolean> => (await request(`${base}/log/4`)).status === 404
  await until(gone, 'the old ones to be removed')
  const peer = await connect(t, base, { name: 'late', since: '2' })
  t.equal(peer.position, 1)
  peer.send(NEXT)
  t.same(await peer.next(), { type: 'gap', removed_through: 4 })
  t.equal((await peer.next<RelayEvent>()).id, 5)
})

t.test('who does not follow the protocol is sent away', async (t: Test) => {
  const { base } = await startHooks(t, postgres)
  await addProvider(base, 'lan', { open: true })
  const id = await sendOpen(base, '{}')
  const cases: Record<string, (peer: Peer) => void> = {
    nonsense: (peer) => peer.send('{'),
    'another type': (peer) => peer.send({ type: 'event' }),
    'a result of nothing': (peer) => peer.send(result(id)),
    'two questions': (peer) => [NEXT, NEXT].forEach(peer.send),
    'many questions': (peer) => [NEXT, NEXT, NEXT, NEXT].forEach(peer.send),
    'a result without its status': (peer) => peer.send(result(id, { status: undefined })),
    'a status that is none': (peer) => peer.send(result(id, { status: 7 })),
    'a long detail': (peer) => peer.send(result(id, { detail: 'x'.repeat(1_001) })),
  }
  for (const [name, breach] of Object.entries(cases)) {
    const peer = await connect(t, base, { name, since: String(id) })
    breach(peer)
    t.match(await peer.closed, { code: 1008, reason: /protocol/ }, name)
  }
  const wrong = await connect(t, base, { name: 'wrong', since: String(id) })
  t.equal((await take(wrong)).id, id)
  wrong.send(result(id + 1))
  t.match(await wrong.closed, { code: 1008 }, 'a result of another event')
  const huge = await connect(t, base, { name: 'huge' })
  huge.send('x'.repeat(20_000))
  t.match(await huge.closed, { code: 1009 }, 'a message over 16 KiB')
  t.same(await attemptsOf(base, id), [], 'nothing was recorded')
})
