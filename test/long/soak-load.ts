import { request, type Agent } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { openPeer } from '../fixtures/forward-setup.ts'
import { keepAlive, send, type Sender } from '../helpers/deliveries.ts'
import type { Caller } from '../helpers/links.ts'
import { META, MODERN, type Endpoint } from '../helpers/mcp.ts'
import type { Owner } from '../helpers/owner.ts'
import type { Service } from '../helpers/server.ts'
import { openStream } from '../helpers/sse.ts'

/** The server, and who uses it. */
export type Soaked = {
  server: Record<Service, string>
  sender: Sender
  ann: Pick<Caller, 'token'>
  endpoint: Endpoint
}

/** Everything that users do, at once, until it is stopped. */
type SoakLoad = {
  /** Answers, by what was done and its status; 0 is no answer. */
  answers: ReadonlyMap<string, number>
  stop(): Promise<void>
}

const PAGES = {
  hooks: [
    '/',
    '/log',
    '/log?limit=5',
    '/log/1',
    '/providers',
    '/settings',
    '/healthz',
    '/metrics',
  ],
  links: ['/-/', '/-/help', '/kept+', '/nothing', '/healthz'],
  ops: ['/', '/sessions', '/events', '/memories', '/config', '/api/v1/health'],
} as const
const JSON_TYPE = { 'Content-Type': 'application/json' }

/** Starts it: each part is a loop with a pause, so that the load is the same on a fast machine. */
export function startSoak(t: Owner, { server, sender, ann, endpoint }: Soaked): SoakLoad {
  const agent = keepAlive(t, 32)
  const answers = new Map<string, number>()
  let stopped = false
  const count = (what: string, status: number) =>
    void answers.set(`${what} ${status}`, (answers.get(`${what} ${status}`) ?? 0) + 1)

  async function loop(what: string, ms: number, turn: (n: number) => Promise<number>) {
    for (let n = 0; !stopped; n++) {
      count(what, await turn(n).catch(() => 0))
      await pause(ms)
    }
  }
  const ask = (url: string, options: Asked = {}) =>
    answerTo(agent, url, options).then(({ status }) => status)
  const api = (method: string, path: string, body?: object) =>
    answerTo(agent, `${server.links}/api/v1${path}`, {
      method,
      headers: { ...JSON_TYPE, Authorization: `Bearer ${ann.token}` },
      body: body && JSON.stringify(body),
    })

  const parts = [
    ...[1, 2, 3].map(() =>
      loop('delivery', 10, async (n) => {
        const delivery = await sender.delivery({ size: n % 50 === 0 ? 50_000 : 300 })
        // Every fourth comes twice.
        if (n % 4 === 0) await send(agent, server.hooks, delivery)
        return (await send(agent, server.hooks, delivery)).status
      }),
    ),
    loop('refusal', 50, async (n) => {
      const [path, body] = [
        ['code_host', 'payments', 'chat', 'generic/nobody'][n % 4],
        `{"n":${n}}`,
      ]
      return ask(`${server.hooks}/webhooks/${path}`, { method: 'POST', headers: JSON_TYPE, body })
    }),
    ...[1, 2].map(() => loop('visit', 5, (n) => ask(`${server.links}/kept?n=${n % 7}`))),
    loop('link', 60, async (n) => {
      const slug = `soak-${n % 20}`
      const made = await api('POST', '/links', { slug, url: `https://${slug}.test/`, tags: ['a'] })
      const { id }: { id: string } = JSON.parse(made.text)
      await api('PUT', `/links/${id}`, { url: `https://${slug}.test/new`, tags: ['b'] })
      await ask(`${server.links}/${slug}`)
      await api('GET', '/links?limit=10')
      return (await api('DELETE', `/links/${id}`)).status
    }),
    ...(['hooks', 'links', 'ops'] as const).map((service) =>
      loop(`page of ${service}`, 40, (n) => {
        const path = PAGES[service][n % PAGES[service].length] ?? '/'
        return ask(server[service] + path)
      }),
    ),
    loop('tool', 50, async (n) => {
      const call = { name: 'list_webhook_events', arguments: { limit: (n % 20) + 1 } }
      const params = { ...call, _meta: META }
      const message = { jsonrpc: '2.0', id: n, method: 'tools/call', params }
      const headers = {
        ...JSON_TYPE,
        Accept: 'application/json, text/event-stream',
        Authorization: `Bearer ${endpoint.token}`,
        'MCP-Protocol-Version': MODERN,
        'Mcp-Method': 'tools/call',
        'Mcp-Name': 'list_webhook_events',
      }
      return ask(endpoint.url, { method: 'POST', headers, body: JSON.stringify(message) })
    }),
    loop('stream', 300, async (n) => {
      const stream = await openStream(
        t,
        `${server.hooks}/events`,
        n % 2 === 0 ? {} : { lastEventId: '1' },
      )
      await pause(500)
      stream.close()
      await stream.closed
      return stream.status
    }),
    loop('relay', 400, async (n) => {
      const query = { name: `soak-${n % 4}`, target: 'http://127.0.0.1:9/' }
      const peer = await openPeer(t, server.hooks, query)
      await peer.next()
      peer.send({ type: 'next' })
      const { id }: { id: number } = await peer.next()
      await peer.next()
      peer.send({ type: 'result', id, status: 200, ms: 1, detail: null, done: true })
      peer.close()
      await peer.closed
      return 101
    }),
    loop('memory', 200, async (n) => {
      const body = JSON.stringify({ category: 'soak', observation: `seen ${n}`, confidence: 0.5 })
      const made = await answerTo(agent, `${server.ops}/api/v1/memories`, {
        method: 'POST',
        headers: JSON_TYPE,
        body,
      })
      const { id }: { id: number } = JSON.parse(made.text)
      return ask(`${server.ops}/api/v1/memories/${id}`, { method: 'DELETE' })
    }),
    loop('session', 500, () => {
      const body = JSON.stringify({ prompt: 'look' })
      const headers = JSON_TYPE
      return ask(`${server.ops}/api/v1/sessions/trigger`, { method: 'POST', headers, body })
    }),
  ]
  const working = Promise.all(parts)
  async function stop() {
    stopped = true
    await working
    agent.destroy()
  }
  t.teardown(stop)
  return { answers, stop }
}

type Asked = {
  method?: string
  headers?: Record<string, string>
  body?: string | undefined
}
type Answered = { status: number; text: string }

/** Of so many calls none is kept: `request` of the helpers keeps each for the check of the contracts. */
function answerTo(agent: Agent, url: string, { method = 'GET', headers = {}, body }: Asked) {
  const done = Promise.withResolvers<Answered>()
  const signal = AbortSignal.timeout(30_000)
  const outgoing = request(url, { method, agent, headers, signal }, (incoming) => {
    let text = ''
    incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    incoming.on('error', done.reject)
    incoming.on('end', () => done.resolve({ status: incoming.statusCode ?? 0, text }))
  })
  outgoing.on('error', done.reject)
  outgoing.end(body)
  return done.promise
}
