import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer } from '../fixtures/forward-setup.ts'
import type { Peer, RelayEvent } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { Env } from '../helpers/program.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const [, server] = backends
const MAX_FORWARDERS = 256
const target = 'http://localhost:3000/hook'

/** Runs `work` while nobody else can read or write a table. */
async function whileLocked(
  t: Test,
  env: Env,
  table: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1 })
  t.teardown(() => sql.end())
  await sql.begin(async (tx) => {
    await tx`lock table ${tx(table)} in access exclusive mode`
    await work()
  })
}

t.test('forwarders that connect at once are counted before they have their names', async (t) => {
  const { base, env } = await startHooks(t, server)
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
  await whileLocked(t, env, 'hooks.forwarders', async () => {
    for (let n = 0; n < 300; n++) waiting.push(connect(`name ${n}`))
    await until(() => refused === 300 - MAX_FORWARDERS, 'those without a place to be refused')
  })
  await Promise.all(waiting)
  t.equal(peers.length, MAX_FORWARDERS)
  const connected = async (): Promise<string | undefined> =>
    /^gatehouse_hooks_forwarders (\d+)$/m.exec((await request(`${base}/metrics`)).text)?.[1]
  t.equal(await connected(), String(MAX_FORWARDERS))
  for (const peer of peers) peer.close()
  await until(async () => (await connected()) === '0', 'all of them to be gone')
  const later = await openPeer(t, base, { name: 'later', target })
  t.match(await later.next(), { type: 'ready' }, 'their places are free')
})

t.test('clients that leave while they connect hold no place', async (t) => {
  const { base, env } = await startHooks(t, server)
  const left: Promise<unknown>[] = []
  await whileLocked(t, env, 'hooks.forwarders', async () => {
    const address = `${base}/relay?${new URLSearchParams({ name: 'left', target }).toString()}`
    const headers = {
      ...{ Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' },
      ...{ 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==' },
    }
    for (let n = 0; n < MAX_FORWARDERS; n++) {
      left.push(request(address, { headers, timeoutMs: 1_000 }))
    }
    for (const { status } of await Promise.allSettled(left)) t.equal(status, 'rejected')
  })
  await until(
    () =>
      openPeer(t, base, { name: 'stays', target }).then(
        () => true,
        () => false,
      ),
    'a place for another',
  )
})

t.test('forwarders that filter by payload search one after the other', async (t) => {
  const { base, env } = await startHooks(t, server)
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
  for (const peer of peers) t.equal((await peer.next<RelayEvent>()).id, id)
})
