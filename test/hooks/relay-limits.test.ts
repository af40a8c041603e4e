import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer, recorded, refusedUpgrade, startForward } from '../fixtures/forward-setup.ts'
import type { Peer, ForwardedEvent } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { metricOf } from '../helpers/deliveries.ts'
import { rawExchange, request } from '../helpers/http.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { SIGNED_ENV, addProvider, deliver, post, startHooks } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

const [, server] = backends
const MAX_FORWARDERS = 256
const target = 'http://localhost:3000/hook'
const HANDSHAKE = {
  ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
}

await t.test('forwarders of one server', async (t: Test) => {
  const { base, env, server: running } = await startHooks(t, server)
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1 })
  t.teardown(() => sql.end())
  /** Connects while nobody else can read or write a table: each forwarder waits for its name. */
  const whileLocked = (work: () => Promise<unknown>): Promise<unknown> =>
    sql.begin(async (tx) => {
      await tx`lock table hooks.forwarders in access exclusive mode`
      await work()
    })
  const connects = (name: string): Promise<boolean> =>
    openPeer(t, base, { name, target }).then(
      (peer) => {
        peer.close()
        return true
      },
      () => false,
    )

  await t.test('they are counted before they have their names', async (t) => {
    const peers: Peer[] = []
    let refused = 0
    const connect = (name: string): Promise<void> =>
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
    const connected = async (): Promise<number | undefined> =>
      metricOf((await request(`${base}/metrics`)).text, 'gatehouse_hooks_forwarders')
    t.equal(await connected(), MAX_FORWARDERS)
    const { status, headers, text } = await refusedUpgrade(base, { name: 'more', target })
    t.match({ status, headers }, { status: 503, headers: { 'retry-after': '5' } })
    t.match(JSON.parse(text), { status: 503, detail: /As many forwarders/ })
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

  await t.test('those that filter by payload search one after the other', async (t) => {
    await addProvider(base, 'lan', { open: true })
    const { id } = (await post(base, 'generic/lan', '{"n":"1"}')).json<Ack>()
    await server.query(
      env,
      `create or replace function hooks.payload_json(payload bytea) returns jsonb
       language plpgsql immutable strict
       as $$ begin perform pg_sleep(0.3); return '{"n":"1"}'; end $$`,
    )
    const peers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        openPeer(t, base, { name: `searches ${n}`, target, since: '1', json: 'n=1' }),
      ),
    )
    for (const peer of peers) {
      t.match(await peer.next(), { type: 'ready' })
      peer.send({ type: 'next' })
    }
    const sleeping = `select count(*)::int as n from pg_stat_activity
                       where datname = current_database() and wait_event = 'PgSleep'`
    let most = 0
    await until(async () => {
      const [row] = await server.query(env, sleeping)
      most = Math.max(most, Number(row?.['n']))
      return peers.every((peer) => peer.waiting() > 0)
    }, 'all of them to be given the event')
    t.equal(most, 1)
    for (const peer of peers) t.equal((await peer.next<ForwardedEvent>()).id, id)
  })

  await t.test('one that does not answer delays no stop', async (t) => {
    const { port, host } = new URL(base)
    const query = new URLSearchParams({ name: 'mute', target }).toString()
    const fields = Object.entries({ Host: host, ...HANDSHAKE })
    const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    // It keeps the connection and sends nothing, not even the answer to the closing.
    let open = false
    const mute = rawExchange(Number(port), `GET /relay?${query} HTTP/1.1\r\n${lines}\r\n`, {
      timeoutMs: 20_000,
      until: (text) => {
        open = text.includes('"ready"')
        return false
      },
    })
    await until(() => open, 'the connection')
    t.same(await running.stop(), { code: 0, signal: null })
    t.equal((await mute).closed, true)
  })
})

async function send(base: string, n: number): Promise<number> {
  return (await deliver(base, 'code_host', `{"n":${n}}`)).json<Ack>().id
}

await t.test('two servers on one database', async (t: Test) => {
  const env = { ...SIGNED_ENV, ...(await server.env(t)) }
  const proxy = await startTcpProxy(t, env['DATABASE_URL'] ?? '')
  const through = { ...env, DATABASE_URL: proxy.through(env['DATABASE_URL'] ?? '') }
  const a = await startServer(t, { services: ['hooks'], env: through })
  const { HOOKS_CODE_HOST_SECRET: _, ...unconfigured } = env
  const b = await startServer(t, { services: ['hooks'], env: unconfigured })

  await t.test('a forwarder goes on at another server, and after an outage', async (t) => {
    const receiver = await startReceiver(t)
    const ids = (): readonly number[] =>
      receiver.received.map(({ headers }) => Number(headers['x-gatehouse-event']))
    const first = await openPeer(t, a.hooks, { name: 'moves', target: receiver.url })
    t.match(await first.next(), { type: 'ready', known: false })
    const one = await send(a.hooks, 1)
    first.send({ type: 'next' })
    t.equal((await first.next<ForwardedEvent>()).id, one)
    first.send({ type: 'result', id: one, status: 200, ms: 1, detail: null, done: true })
    await recorded(a.hooks, one)
    first.close()
    const two = await send(a.hooks, 2)

    // Server b has no secret of the code host: it refuses there, and leaves nothing out.
    const args = [receiver.url, '--name', 'moves', '--from']
    const second = startForward(t, [...args, b.hooks])
    await until(() => second.said().includes('secret of the provider'), 'the refusal')
    t.match((await recorded(a.hooks, two)).at(-1), {
      outcome: 'refused',
      detail: /cannot be signed/,
    })
    t.same(ids(), [])
    const third = startForward(t, [...args, a.hooks])
    t.same(await second.exited, { code: 1, signal: null }, 'the newer one has the name')
    t.match(second.said(), /^gatehouse: Another forwarder has connected under this name\.$/m)
    await until(() => third.lines().length === 1, 'the second event')
    t.same(ids(), [two])
    // The older forwarder may have tried once more before it went: its attempt may be the newest.
    await until(
      async () => (await recorded(a.hooks, two)).some(({ outcome }) => outcome === 'delivered'),
      'its attempt',
    )

    const idle = await openPeer(t, a.hooks, { name: 'idle', target })
    await idle.next()
    proxy.refuse()
    proxy.reset()
    idle.send({ type: 'next' })
    t.match(await idle.closed, { code: 1013, reason: /database is out of reach/ })
    const { status, text } = await refusedUpgrade(a.hooks, { name: 'new', target })
    t.equal(status, 503)
    t.match(JSON.parse(text), { detail: /database is out of reach/ })
    await proxy.pass()
    const three = await until(() => send(a.hooks, 3), 'the database to be used again', 30_000)
    await until(() => third.lines().length === 2, 'the third event', 30_000)
    t.same([...new Set(ids())], [two, three])
    t.same(await third.stop('SIGINT'), { code: 0, signal: null })
  })

  await t.test('a name belongs to its newest connection, wherever it is', async (t) => {
    const query = { name: 'one', target }
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
    const id = await send(a.hooks, 4)
    t.match(await newest.next<ForwardedEvent>(), {
      id,
      refused: /cannot be signed/,
      headers: null,
    })
    t.match(await other.next<ForwardedEvent>(), { id, headers: {} })
  })
})
