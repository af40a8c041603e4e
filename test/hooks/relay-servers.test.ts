import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer, recorded, refusedUpgrade, startForward } from '../fixtures/forward-setup.ts'
import type { RelayEvent } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { startPostgres } from '../helpers/postgres.ts'
import { rawExchange } from '../helpers/raw-http.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { startServer } from '../helpers/server.ts'
import { deliver, SIGNED_ENV } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const TARGET = 'http://localhost:3000/hook'

async function send(base: string, n: number): Promise<number> {
  return (await deliver(base, 'code_host', `{"n":${n}}`)).json<Ack>().id
}

t.test('two servers on one database', async (t: Test) => {
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)) }
  const a = await startServer(t, { services: ['hooks'], env })
  const { HOOKS_CODE_HOST_SECRET: _, ...unconfigured } = env
  const b = await startServer(t, { services: ['hooks'], env: unconfigured })

  await t.test('a forwarder that goes to the other server goes on there', async (t) => {
    const target = await startReceiver(t)
    const ids = (): readonly number[] =>
      target.received.map(({ headers }) => Number(headers['x-gatehouse-event']))
    const args = [target.url, '--name', 'moves', '--from']
    const first = startForward(t, [...args, a.hooks])
    await first.connected()
    const one = await send(a.hooks, 1)
    await until(() => first.lines().length === 1, 'the first event')
    t.same(await first.stop('SIGINT'), { code: 0, signal: null })
    const two = await send(a.hooks, 2)

    // Server b can't sign what the code host sends: it is refused there, and nothing is left out.
    const second = startForward(t, [...args, b.hooks])
    await second.connected()
    await until(() => second.said().includes('secret of the sender'), 'the refusal')
    t.match((await recorded(a.hooks, two)).at(-1), {
      outcome: 'refused',
      detail: /cannot be signed/,
    })
    t.same(ids(), [one])
    const third = startForward(t, [...args, a.hooks])
    t.same(await second.exited, { code: 1, signal: null }, 'the newer one has the name')
    t.match(second.said(), /^gatehouse: Another forwarder has connected under this name\.$/m)
    await until(() => third.lines().length === 1, 'the second event')
    t.same(ids(), [one, two])
    await until(
      async () => (await recorded(a.hooks, two))[0]?.outcome === 'delivered',
      'its attempt',
    )
    await third.stop()
  })

  await t.test('a name belongs to its newest connection, wherever it is', async (t) => {
    const query = { name: 'one', target: TARGET }
    const older = await openPeer(t, a.hooks, query)
    t.match(await older.next(), { type: 'ready', known: false })
    older.send({ type: 'next' })
    const newer = await openPeer(t, b.hooks, query)
    t.match(await newer.next(), { type: 'ready', known: true })
    t.match(await older.closed, { code: 4409, reason: /Another forwarder/ })
    const other = await openPeer(t, a.hooks, { ...query, name: 'two' })
    await other.next()
    const newest = await openPeer(t, b.hooks, query)
    t.match(await newer.closed, { code: 4409 }, 'of the same server too')
    await newest.next()
    newest.send({ type: 'next' })
    other.send({ type: 'next' })
    const id = await send(a.hooks, 3)
    t.match(await newest.next<RelayEvent>(), { id, refused: /cannot be signed/, headers: null })
    t.match(await other.next<RelayEvent>(), { id, headers: {} })
  })
})

t.test('a forwarder that does not answer delays no stop', async (t: Test) => {
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)) }
  const server = await startServer(t, { services: ['hooks'], env })
  const { port, host } = new URL(server.hooks)
  const query = new URLSearchParams({ name: 'mute', target: TARGET }).toString()
  const handshake =
    `GET /relay?${query} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\n` +
    'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  // It keeps the connection and never says a word, not even in answer to the closing.
  let open = false
  const mute = rawExchange(Number(port), handshake, {
    timeoutMs: 20_000,
    until: (text) => {
      open = text.includes('"ready"')
      return false
    },
  })
  await until(() => open, 'the connection')
  t.same(await server.stop(), { code: 0, signal: null }, 'after ten seconds it would be 1')
  t.equal((await mute).closed, true)
})

t.test('as many as a process serves', async (t: Test) => {
  const env = { ...SIGNED_ENV, ...(await postgres.env(t)) }
  const { hooks } = await startServer(t, { services: ['hooks'], env })
  const peers = await Promise.all(
    Array.from({ length: 256 }, (_, n) => openPeer(t, hooks, { name: `n${n}`, target: TARGET })),
  )
  await Promise.all(peers.map((peer) => peer.next()))
  const { status, headers, text } = await refusedUpgrade(hooks, { name: 'more', target: TARGET })
  t.match({ status, headers }, { status: 503, headers: { 'retry-after': '5' } })
  t.match(JSON.parse(text), { status: 503, detail: /As many forwarders/ })
  peers[0]?.close()
  await peers[0]?.closed
  await until(
    () => openPeer(t, hooks, { name: 'more', target: TARGET }).then(() => true),
    'the place that became free',
  )
})

t.test('forwarding survives the death of the database', async (t: Test) => {
  const cluster = await startPostgres()
  t.teardown(() => cluster.destroy())
  const env = { ...SIGNED_ENV, DATABASE_URL: await cluster.createDatabase() }
  const { hooks } = await startServer(t, { services: ['hooks'], env })
  const target = await startReceiver(t)
  const forwarder = startForward(t, [target.url, '--from', hooks])
  await forwarder.connected()
  const first = await send(hooks, 1)
  await until(() => forwarder.lines().length === 1, 'the first event')
  const idle = await openPeer(t, hooks, { name: 'idle', target: TARGET })
  await idle.next()
  await cluster.stop('immediate')
  idle.send({ type: 'next' })
  t.match(await idle.closed, { code: 1013, reason: /database is out of reach/ })
  const { status, text } = await refusedUpgrade(hooks, { name: 'new', target: TARGET })
  t.equal(status, 503)
  t.match(JSON.parse(text), { detail: /database is out of reach/ })
  await cluster.start()
  const second = await until(() => send(hooks, 2), 'the database to be used again', 30_000)
  await until(() => forwarder.lines().length === 2, 'the second event', 30_000)
  const ids = target.received.map(({ headers }) => Number(headers['x-gatehouse-event']))
  t.same([...new Set(ids)], [first, second])
})
