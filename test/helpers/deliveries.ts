import { crc32 } from 'node:zlib'
import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Backend } from './backends.ts'
import { signatureHeaders } from './hooks.ts'
import type { Owner } from './owner.ts'
import type { Env } from './program.ts'
import { secret, transcript } from './secrets.ts'

/** A signed body with its delivery id, ready to be sent to `/webhooks/code_host`. */
export type Delivery = {
  id: string
  body: string
  sha256: string
  headers: Record<string, string>
}

/** What the server promised to keep: the id that it gave to a delivery, and the body's hash. */
export type Acked = { id: number; delivery: string; sha256: string }

/** An answer as far as load looks at it; `ms` is how long the sender waited. */
export type Answer = {
  status: number
  ms: number
  type: string
  retryAfter: string | undefined
  connection: string | undefined
  text: string
}

/** A sender that the server knows by the variables in `env`. */
export type Sender = ReturnType<typeof createSender>

type BodyOptions = { type?: string; size?: number }

let made = 0

/** A sender with a fresh secret; `env` goes to the server. */
export function createSender() {
  const key = secret('code-host')
  const env: Env = { HOOKS_CODE_HOST_SECRET: key }
  /** The same body under `count` delivery ids: signed once, for throughput. */
  async function deliveries(count: number, { type = 'push', size = 0 }: BodyOptions = {}) {
    const padding = randomBytes(Math.ceil(size / 2))
      .toString('hex')
      .slice(0, size)
    const body = JSON.stringify({ n: made++, padding })
    const headers = { 'Content-Type': 'application/json', 'X-CodeHost-Event': type }
    const signed = { ...headers, ...signatureHeaders('code_host', body, { secret: key }) }
    const sha256 = createHash('sha256').update(body).digest('hex')
    return Array.from({ length: count }, () => {
      const id = `delivery-${process.pid}-${made++}`
      return { id, body, sha256, headers: { ...signed, 'X-CodeHost-Delivery': id } }
    })
  }
  return {
    env,
    deliveries,
    /** One signed body for each delivery. */
    async delivery(options?: BodyOptions) {
      const [only] = await deliveries(1, options)
      if (only === undefined) throw new Error('no delivery was made')
      return only
    },
  }
}

/** Connections that are used again; they are closed with the test. */
export function keepAlive(t: Owner, sockets: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets })
  t.teardown(() => agent.destroy())
  return agent
}

/** Sends a delivery and waits for its answer; an error when the server gave none within the limit. */
export function send(agent: Agent, base: string, { body, headers }: Delivery, timeoutMs = 30_000) {
  const done = Promise.withResolvers<Answer>()
  const started = performance.now()
  const signal = AbortSignal.timeout(timeoutMs)
  const options = { method: 'POST', agent, headers, signal }
  const outgoing = request(`${base}/webhooks/code_host`, options, (incoming) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    incoming.on('error', done.reject)
    incoming.on('end', () => {
      const { 'content-type': type = '', 'retry-after': retryAfter, connection } = incoming.headers
      const [status, ms] = [incoming.statusCode ?? 0, performance.now() - started]
      if (status !== 202) transcript('http', `\n--- ${status}\n${text}`, 'load')
      done.resolve({ status, ms, type, retryAfter, connection, text })
    })
  })
  outgoing.on('error', done.reject)
  outgoing.end(body)
  return done.promise
}

/** What an accepted delivery was promised. */
export function ackOf({ id, sha256 }: Delivery, { text }: Answer) {
  const ack: { id: number } = JSON.parse(text)
  return { id: ack.id, delivery: id, sha256 }
}

/** Sends all with `senders` at a time, the n-th to the n-th base in turn; each must be accepted. */
export async function sendAll(
  t: Owner,
  bases: readonly string[],
  deliveries: readonly Delivery[],
  senders = 32,
) {
  const agent = keepAlive(t, senders)
  const acked: Acked[] = []
  let next = 0
  async function work() {
    for (let at = next++; at < deliveries.length; at = next++) {
      const [base, delivery] = [bases[at % bases.length], deliveries[at]]
      if (base === undefined || delivery === undefined) return
      const answer = await send(agent, base, delivery)
      if (answer.status !== 202) throw new Error(`expected 202, was ${answer.status}`)
      acked.push(ackOf(delivery, answer))
    }
  }
  await Promise.all(Array.from({ length: senders }, work))
  return acked
}

/** Senders that go on until they are stopped, whatever they are answered. */
export type Load = ReturnType<typeof startLoad>

/** How to send: `base` is asked before each request, because a restart changes it. */
type LoadOptions = {
  base: () => string
  sender: Sender
  senders: number
  size?: number
  /** False for a connection of its own for each request. */
  keepsConnections?: boolean
  /** A sender waits this long for an answer, 30 s when absent. */
  timeoutMs?: number
  /** A sender rests this long after an acknowledgement: load that is only to be there costs little. */
  restMs?: number
}

/** Starts senders of signed bodies, each with a body and a delivery id of its own. */
export function startLoad(t: Owner, options: LoadOptions) {
  const { base, sender, senders, size = 200, keepsConnections = true, timeoutMs, restMs } = options
  const agent = keepsConnections ? keepAlive(t, senders) : new Agent({ keepAlive: false })
  /** Every promise so far. */
  const acked: Acked[] = []
  /** Every other answer so far. */
  const refused: Answer[] = []
  /** Requests that got no answer so far: the server went away, or it was too late. */
  const unanswered: Error[] = []
  /** SHA-256 of every body that was sent, by delivery id. */
  const sent = new Map<string, string>()
  let stopped = false

  async function work() {
    while (!stopped) {
      const delivery = await sender.delivery({ size })
      sent.set(delivery.id, delivery.sha256)
      try {
        const answer = await send(agent, base(), delivery, timeoutMs)
        if (answer.status === 202) acked.push(ackOf(delivery, answer))
        else refused.push(answer)
        if (answer.status !== 202) await pause(50)
        else if (restMs !== undefined) await pause(restMs)
      } catch (error) {
        unanswered.push(error instanceof Error ? error : new Error(String(error)))
        await pause(20)
      }
    }
  }

  const working = Promise.all(Array.from({ length: senders }, work))
  /** The last request of each sender is answered. */
  async function stop() {
    stopped = true
    await working
  }
  t.teardown(stop)
  return { acked, sent, refused, unanswered, stop }
}

/** A stored event: `isWhole` says whether its bytes have the checksum that was noted. */
export type Stored = { id: number; delivery: string; sha256: string; isWhole: boolean }

/** Every stored event by delivery id; on embedded only while no server runs. */
export async function storedEvents(backend: Pick<Backend, 'query'>, env: Env) {
  const text = `select id, external_id, encode(sha256(payload), 'hex') as sha256,
                       body_check, payload
                  from hooks.events`
  const rows = await backend.query(env, text)
  return new Map(
    rows.map((row) => {
      const [delivery, sha256] = [String(row['external_id']), String(row['sha256'])]
      const check = row['body_check'] as number | null
      const isWhole = check === null || check === (crc32(row['payload'] as Buffer) | 0)
      return [delivery, { id: Number(row['id']), delivery, sha256, isWhole }]
    }),
  )
}

/** What was promised and is not there, byte for byte and under its id. */
export function lostOf(acked: readonly Acked[], stored: ReadonlyMap<string, Stored>) {
  return acked.filter(({ id, delivery, sha256 }) => {
    const row = stored.get(delivery)
    return row === undefined || row.id !== id || row.sha256 !== sha256
  })
}

/** Rows that are not whole: other bytes than were sent, or other ones than the row's checksum says. */
export function brokenOf(sent: ReadonlyMap<string, string>, stored: ReadonlyMap<string, Stored>) {
  return [...stored.values()].filter(
    ({ delivery, sha256, isWhole }) => !isWhole || sha256 !== sent.get(delivery),
  )
}

/** Value of a sample in the text of `/metrics`; undefined when it is not there. */
export function metricOf(text: string, name: string) {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1).split(' ')[0])
}
