import { setTimeout as pause } from 'node:timers/promises'
import Stripe from 'stripe'
import { t } from 'tap'
import { recorded, startForward } from '../fixtures/forward-setup.ts'
import { eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { freePort } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { signatureHeaders } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const EVENTS = 1_000
const SENDERS = 4

/** Events may be so many ahead of the target: something is sent until the end of the story. */
const AHEAD = 150

/** When which part dies, by events that the target has got. */
const DEATHS = { forwardKilled: 150, serverKilled: 350, serverStopped: 550, bothKilled: 750 }

/** Bodies that only survive when their bytes are left alone; some are large. */
function bodyOf(n: number) {
  const text = ['\u00e9\u{1f512}\u2028', '\\u001B', '\r\n\t', '"', ''][n % 5]
  const filler = 'x'.repeat(n % 100 === 0 ? 300_000 : n % 700)
  return `{ "id":"evt_${n}",\r\n "type": "charge.succeeded", "text":${JSON.stringify(text)}, "filler":"${filler}" }`
}

// 1,000 events, while the forwarder is killed and restarted and so is the server: the target gets
// each at least once, in order, with equal bytes, and verifies each as the sender's own library does.
await eachBackend(t, 'forwarding survives the deaths of both sides', async (t, backend) => {
  const key = secret('payments')
  const port = await freePort()
  const base = `http://127.0.0.1:${port}`
  const env = {
    ...(await backend.env(t)),
    HOOKS_ADDR: `127.0.0.1:${port}`,
    HOOKS_PAYMENTS_SECRET: key,
  }

  const got: number[] = []
  const bodies = new Map<string, string>()
  const problems: string[] = []
  const target = await startReceiver(t, ({ headers, body }, response) => {
    const text = body.toString('utf8')
    try {
      // The default tolerance: the signature is of now, whenever the event came.
      const event = Stripe.webhooks.constructEvent(body, String(headers['stripe-signature']), key)
      if (bodies.has(event.id) && bodies.get(event.id) !== text)
        problems.push(`${event.id} changed`)
      bodies.set(event.id, text)
    } catch (error) {
      problems.push(String(error))
    }
    got.push(Number(headers['x-gatehouse-event']))
    response.writeHead(200).end('{"received": true}')
  })

  const ids = new Map<string, number>()
  let next = 0
  async function deliver(n: number) {
    const body = bodyOf(n)
    for (;;) {
      const headers = {
        'Content-Type': 'application/json',
        ...signatureHeaders('payments', body, { secret: key, spelling: 'real' }),
      }
      // The sender repeats what was not acknowledged, as all of them do.
      const answer = await request(`${base}/webhooks/payments`, {
        method: 'POST',
        headers,
        body,
      }).catch(() => undefined)
      if (answer?.status === 202) return void ids.set(`evt_${n}`, answer.json<{ id: number }>().id)
      await pause(50)
    }
  }
  async function send() {
    for (let n = next++; n < EVENTS; n = next++) {
      await until(() => n < bodies.size + AHEAD, 'the target to keep up', 60_000)
      await deliver(n)
    }
  }

  const startHooks = () => startServerProcess(t, { services: ['hooks'], env })
  const startForwarder = async () => {
    const forwarder = startForward(t, [`${target.url}/hook`, '--from', base, '--name', 'story'])
    await forwarder.connected()
    return forwarder
  }
  const reached = (count: number) =>
    until(() => bodies.size >= count, `${count} events at the target`, 60_000)

  let server = await startHooks()
  let forwarder = await startForwarder()
  const sending = Promise.all(Array.from({ length: SENDERS }, send))

  await reached(DEATHS.forwardKilled)
  await forwarder.stop('SIGKILL')
  forwarder = await startForwarder()
  await reached(DEATHS.serverKilled)
  await server.kill()
  server = await startHooks()
  await forwarder.connected(2)
  await reached(DEATHS.serverStopped)
  t.same(await server.stop(), { code: 0, signal: null }, 'a stop does not wait for the forwarder')
  server = await startHooks()
  await forwarder.connected(3)
  await reached(DEATHS.bothKilled)
  await Promise.all([server.kill(), forwarder.stop('SIGKILL')])
  server = await startHooks()
  forwarder = await startForwarder()

  await sending
  await reached(EVENTS)
  const newest = Math.max(...ids.values())
  await until(() => forwarder.lines().some((line) => line.startsWith(`${newest}  `)), 'its line')
  t.same(problems, [], 'each is verified by the sender’s own library')
  const changed = Array.from({ length: EVENTS }, (_, n) => n).filter(
    (n) => bodies.get(`evt_${n}`) !== bodyOf(n),
  )
  t.same(changed, [], 'each came at least once, with equal bytes')
  const early = got.filter((id, at) => id < (got[at - 1] ?? 0))
  t.same(early, [], 'none comes before one in front of it')
  t.same(
    [...new Set(got)],
    [...ids.values()].toSorted((a, b) => a - b),
    'these and no others',
  )
  t.ok(got.length - EVENTS <= 4, `${got.length - EVENTS} came twice, at most one for each death`)
  for (const id of [Math.min(...ids.values()), newest]) {
    const [attempt] = await recorded(base, id)
    t.match(attempt, { outcome: 'delivered', target: `${target.url}/hook`, kind: /forward/i })
  }

  t.same(await forwarder.stop('SIGINT'), { code: 0, signal: null }, 'Ctrl-C ends it cleanly')
  await server.stop()
  const missing = await backend.query(
    env,
    `select e.id
       from hooks.events e
      where not exists (
        select from hooks.attempts a
         where a.event_id = e.id and a.kind = 'forward' and a.outcome = 'delivered' and a.status = 200)`,
  )
  t.same([...missing], [], 'each event’s attempt is recorded')
})
