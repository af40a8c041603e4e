import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { allServed, startVisits } from '../helpers/load.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { brokenOf, createSender, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { follow } from '../helpers/replays.ts'
import { request } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { ended, opsServer, startGate } from '../helpers/ops.ts'
import type { Session } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { openStream } from '../helpers/sse.ts'
import { startSupervised } from './supervisor.ts'
import { until } from '../helpers/until.ts'

const RESTARTS = 2
const STREAMS = 2
/** Deliveries that are acknowledged between two restarts. */
const BETWEEN = 50

await onPostgres(t, 'restarts under load', async (t: Test, backend) => {
  const [sender, gate] = [createSender(), await startGate(t)]
  const env = { ...(await backend.env(t)), ...sender.env, OPS_INVENTORY: gate.inventory }
  const supervised = await startSupervised(t, env)
  const links = linksServer(supervised, env)
  await makeLink(await links.user('ann'), 'docs', { url: 'https://docs.test/' })
  const ops = opsServer(supervised, env)

  const streams = Array.from({ length: STREAMS }, () => follow(t, `${supervised.hooks}/events`))
  const options = { base: () => supervised.hooks, sender, senders: 4 }
  const loads = [true, false].map((keepsConnections) =>
    startLoad(t, { ...options, keepsConnections }),
  )
  const visits = [true, false].map((keeps) =>
    startVisits(links.base, ['/docs'], { clients: 2, keepsConnections: keeps }),
  )
  const acked = () => loads.flatMap((load) => load.acked)
  const outputs = new Map<number, ReturnType<typeof follow>>()

  for (let restart = 0; restart < RESTARTS; restart++) {
    const before = acked().length
    await until(() => acked().length >= before + BETWEEN, 'the load to be under way', 30_000)
    // Without a schedule that is due, the first process starts a session, and the later ones do not.
    if (restart > 0) await ops.api('POST', '/sessions/trigger', { prompt: 'look' })
    const session = await until(async () => {
      const { json } = await ops.api<{ sessions: readonly Session[] }>('GET', '/sessions')
      return json.sessions.find(({ status }) => status === 'running')
    }, 'a session to run')
    const url = `${ops.base}/sessions/${session.id}/stream`
    const output = follow(t, url, ({ event }) => event === 'done')
    outputs.set(session.id, output)
    await until(() => output.ids.length > 0, 'its output')
    t.equal(await supervised.restart(), 0, 'SIGTERM ends it in order')
    t.match(await ended(ops, session.id), { status: 'stopped' })
  }
  const before = acked().length
  await until(() => acked().length >= before + BETWEEN, 'the load to go on', 30_000)

  await Promise.all([...loads, ...visits].map((load) => load.stop()))
  allServed(t, loads, visits)
  t.comment(`${acked().length} deliveries, ${visits.map(({ total }) => total)} visits`)

  const ids = acked()
    .map(({ id }) => id)
    .toSorted((a, b) => a - b)
  for (const stream of streams) {
    await until(() => stream.ids.at(-1) === ids.at(-1), 'a stream to have the last event')
    await stream.stop()
    t.same(stream.refused, [], 'each connection is a stream')
    t.ok(stream.connections > RESTARTS, 'it was ended by each restart')
    t.same(stream.ids, ids, 'it has every event once and in order')
    t.notOk(stream.events.some(({ event }) => event === 'gap'))
  }
  for (const [session, output] of outputs) {
    await until(() => output.events.at(-1)?.event === 'done', 'the end of the output')
    const whole = await openStream(t, `${ops.base}/sessions/${session}/stream`)
    await whole.closed
    t.same(output.refused, [])
    // Until the old process has stopped to accept, it ends a stream at once.
    t.ok(output.connections > 1, 'the next process goes on with the output')
    t.same(output.events, whole.events, 'of which it has all, once and in order')
  }

  t.same(await supervised.stop(), { code: 0, signal: null })
  const stored = await storedEvents(backend, env)
  t.same(lostOf(acked(), stored), [], `all of ${acked().length} acknowledged are there`)
  const sent = new Map(loads.flatMap((load) => [...load.sent]))
  t.same(brokenOf(sent, stored), [])
  t.equal(stored.size, acked().length, 'whatever was stored was answered')
  t.notMatch(supervised.logs().join('\n'), /handler failed|unhandled|"level":"error"/i)
})

await t.test('sockets that are meant for another process are left alone', async (t) => {
  const passed = { LISTEN_FDS: '1', LISTEN_FDNAMES: 'hooks', LISTEN_PID: '1' }
  const env = { ...(await backends[1].env(t)), ...passed, HOOKS_ADDR: 'fd:hooks' }
  const result = await runCliProcess(['serve', 'hooks'], { env })
  t.match(result, {
    code: 1,
    stdout: '',
    stderr: /^gatehouse: No socket named "hooks" was passed/m,
  })
})

await t.test('a unix socket can be passed as well', async (t) => {
  const folder = await temporaryFolder(t, 'socket')
  const socketPath = join(folder, 'links.sock')
  const supervised = await startSupervised(t, await backends[1].env(t), {
    paths: { links: socketPath },
  })
  t.equal(supervised.links, 'fd:links', 'its ready line has the name: Node knows no path')
  const ask = () => request('http://localhost/healthz', { socketPath })
  t.equal((await ask()).status, 200)
  t.equal(await supervised.restart(), 0)
  t.equal((await ask()).status, 200, 'it is still there')
})
