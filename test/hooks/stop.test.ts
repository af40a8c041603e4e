import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { t, type Test } from 'tap'
import { onPostgres, postgres } from '../helpers/backends.ts'
import {
  createSender,
  lostOf,
  startLoad,
  storedEvents,
  type Delivery,
} from '../helpers/deliveries.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

await onPostgres(t, 'SIGTERM under load', async (t, backend) => {
  const sender = createSender()
  const env = { ...(await backend.env(t)), ...sender.env }
  const server = await startServerProcess(t, { services: ['hooks'], env, mayExit: true })
  const base = server.hooks
  const streams = await Promise.all([1, 2, 3].map(() => openStream(t, `${base}/events`)))
  for (const stream of streams) await stream.until(({ event }) => event === 'status')
  // The streams were opened with another delay: only a new field can tell them this one.
  t.equal((await postForm(base, '/settings', { sse_retry_ms: '500' })).status, 200)
  const load = startLoad(t, { base: () => base, sender, senders: 16 })
  await until(() => load.acked.length > 50, 'the load to be under way')
  const delivery = await sender.delivery({ size: 20_000 })
  const text = post(delivery)
  const slow = await openSocket(t, base)
  slow.write(text.slice(0, 10_000))
  await until(() => load.acked.length > 150, 'the slow request to have arrived by half')
  process.kill(server.pid, 'SIGTERM')
  await Promise.all(streams.map((stream) => stream.closed))
  await until(async () => !(await accepts(base)), 'nobody to be accepted any more')
  // From here on it would only be refused.
  await load.stop()
  t.notOk(said(server, 'stopped'), 'the slow request is waited for')
  slow.write(text.slice(10_000))
  // Its connection ends with the answer.
  const answer = (await slow.toArray()).join('')
  t.match(answer, /^HTTP\/1\.1 202 .*\r\nconnection: close\r\n/is, 'it is answered')
  t.same(await server.exited, { code: 0, signal: null })

  t.same(
    streams.map(({ retry }) => retry),
    [500, 500, 500],
    'each stream ended with its retry',
  )
  t.same(load.refused, [], 'what was taken was answered')
  const [, body = ''] = answer.split('\r\n\r\n')
  const acked = [...load.acked, { ...delivery, delivery: delivery.id, id: JSON.parse(body).id }]
  const stored = await storedEvents(backend, env)
  t.same(lostOf(acked, stored), [], `all of ${acked.length} acknowledged are there`)
  const answered = new Set(acked.map((ack) => ack.delivery))
  const unanswered = [...stored.keys()].filter((stored_id) => !answered.has(stored_id))
  t.same(unanswered, [], 'whatever was stored was answered')
  t.notMatch(server.logs().join('\n'), /handler failed|unhandled|"level":"error"/i)
})

await t.test('signals while a request never ends', async (t) => {
  const { server, slow } = await until(() => pressOnce(t), 'one press as two signals')
  const cut = once(slow, 'close')
  await until(() => said(server, 'stopping'), 'the stop to begin')
  await until(async () => !(await accepts(server.hooks)), 'the stop to go on')

  // The stop above waits for its request. This one does not.
  await t.test('SIGTERM after SIGINT ends it at once', async (t) => {
    const { server, slow } = await startHeld(t)
    process.kill(server.pid, 'SIGINT')
    await until(() => said(server, 'stopping'), 'the first signal to be taken')
    const cut = once(slow, 'close')
    process.kill(server.pid, 'SIGTERM')
    t.same(await server.exited, { code: 1, signal: null })
    await cut
    t.notOk(said(server, 'stopped'), 'nothing is waited for')
  })

  // After 10 s it would end with another code.
  t.same(await server.exited, { code: 0, signal: null }, 'the request does not hold the stop')
  await cut
  t.ok(said(server, 'stopped'), 'in order')
})

/**
 * A server after one Ctrl-C in a terminal. npm passes it on, so the program gets two signals; 300 ms
 * apart they count as two presses. Undefined when this process paused that long between them.
 */
async function pressOnce(t: Test) {
  const held = await startHeld(t)
  const { pid, hooks } = held.server
  const stream = await openStream(t, `${hooks}/events`)
  await stream.until(({ event }) => event === 'status')
  stream.pause()
  const first = performance.now()
  process.kill(pid, 'SIGINT')
  untilTaken(pid)
  process.kill(pid, 'SIGINT')
  return performance.now() - first < 250 ? held : undefined
}

/** Waits until a process has no signal before it: a second one is not merged with it. */
function untilTaken(pid: number) {
  while (!/^ShdPnd:\t0+$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')));
}

/** A server that is busy with half of a delivery on the connection `slow`. */
async function startHeld(t: Test) {
  const sender = createSender()
  const env = { ...(await postgres.env(t)), ...sender.env }
  const server = await startServerProcess(t, { services: ['hooks'], env, mayExit: true })
  const slow = await openSocket(t, server.hooks)
  slow.write(post(await sender.delivery({ size: 20_000 })).slice(0, 10_000))
  // Answered after what was sent before it: the half has arrived as well.
  t.equal((await request(`${server.hooks}/healthz`)).status, 200)
  return { server, slow }
}

function said(server: ServerProcess, message: string) {
  return server.logs().some((line) => line.includes(`"msg":"${message}"`))
}

/** A delivery as the bytes of its request. */
function post({ body, headers }: Delivery) {
  const fields = { Host: 'localhost', ...headers, 'Content-Length': Buffer.byteLength(body) }
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
  return ['POST /webhooks/code_host HTTP/1.1', ...lines, '', body].join('\r\n')
}

async function openSocket(t: Test, base: string) {
  const socket = connect(Number(new URL(base).port), '127.0.0.1')
  socket.setEncoding('utf8').on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

async function accepts(base: string) {
  const socket = connect(Number(new URL(base).port), '127.0.0.1')
  const accepted = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return accepted
}
