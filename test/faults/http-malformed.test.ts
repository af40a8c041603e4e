import { connect } from 'node:net'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { extent } from '../helpers/program.ts'
import { allIn, rawExchange, request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { inventoryFile, opsServer, type Session } from '../helpers/ops.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, eventIds } from '../helpers/hooks.ts'
import { WEB_SOCKET, WRONG, head, malformedRequests, type Target } from './malformed.ts'

// What is no HTTP, or could be read in two ways, is answered 4xx in the service's own shape or only
// closed, at each of the three listeners: its connection ends, no second request is heard in it,
// nothing is stored, nothing fails, and the next request is served. So is a request that breaks off,
// wherever it does.

const AT_ONCE = 12
const PATIENT = { timeoutMs: 20_000 }
/** A request is cut behind each byte, or behind some. */
const STEP = extent({ short: 24, long: 1 })
/** What reads a request is the same for all services: the others get a part of the cases, or all. */
const OF_OTHERS = extent({ short: 6, long: 1 })

const key = keepSecret('chat-key', `key-${'k'.repeat(40)}`)
const inventory = await inventoryFile(t, { services: [] })
const env = { ...(await postgres.env(t)), OPS_INVENTORY: inventory, OPS_CHAT_API_KEY: key }
const server = await startServer(t, { env })
await addProvider(server.hooks, 'lan', { open: true })
const caller = await linksServer(server, env).user('ann')
const ops = opsServer(server, env)

const hooksPost = 'POST /webhooks/generic/lan HTTP/1.1'
const linksPost = 'POST /api/v1/links HTTP/1.1'
const link = '{"slug":"poison","url":"https://poison.test/"}'
const own = {
  hooks: ['Content-Type: application/json'],
  links: ['Content-Type: application/json', `Authorization: Bearer ${caller.token}`],
  ops: ['Content-Type: application/json', `Authorization: Bearer ${key}`],
}

type Service = Target & {
  base: string
  body: string
  /** The members of an error. */
  shape: readonly string[]
  /** How many things are stored. */
  count(): Promise<number>
}

const services: Readonly<Record<keyof typeof own, Service>> = {
  hooks: {
    base: server.hooks,
    line: hooksPost,
    headers: own.hooks,
    body: '{"whole":true}',
    poison: whole(hooksPost, own.hooks, '{"poison":true}'),
    shape: ['type', 'title', 'status', 'detail', 'instance'],
    count: async () => (await eventIds(server.hooks)).length,
  },
  links: {
    base: server.links,
    line: linksPost,
    headers: own.links,
    body: link,
    poison: whole(linksPost, own.links, link),
    shape: ['error', 'code'],
    count: async () => (await caller.api<{ links: unknown[] }>('GET', '/links')).json.links.length,
  },
  ops: {
    base: server.ops,
    line: 'POST /api/v1/webhook HTTP/1.1',
    headers: own.ops,
    body: '{"service":"shop"}',
    shape: ['error'],
    poison: whole('POST /api/v1/sessions/trigger HTTP/1.1', own.ops, '{"prompt":"poison"}'),
    count: async () => {
      const { json } = await ops.api<{ sessions: Session[] }>('GET', '/sessions')
      return json.sessions.filter(({ prompt_text }) => prompt_text === 'poison').length
    },
  },
}

for (const [name, service] of Object.entries(services)) {
  const port = Number(new URL(service.base).port)

  await t.test(`${name}: what is malformed`, async (t) => {
    const cases = malformedRequests(service)
    t.ok(cases.length > 100, `${cases.length} cases`)
    const tried = cases.filter((_, at) => name === 'hooks' || at % OF_OTHERS === 0)
    await inTurn(tried, async (one) => {
      const bytes = Buffer.from(one.text, 'latin1')
      const { text, closed } = await rawExchange(port, bytes, PATIENT)
      t.same(statuses(text), one.answers, one.name)
      t.ok(closed, `${one.name}: the connection ends`)
      if ((one.answers.at(-1) ?? 0) >= 400) wellFormed(t, text, service, one.name)
    })
    t.equal((await request(`${service.base}/healthz`)).status, 200)
  })

  await t.test(`${name}: what breaks off`, async (t) => {
    const { line, headers, body } = service
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const all = [
      whole(line, headers, body),
      head(line, ...headers, 'Host: localhost', 'Transfer-Encoding: chunked') + chunks,
    ]
    for (const text of all) {
      const cuts = Array.from({ length: text.length }, (_, at) => at)
      await inTurn(
        cuts.filter((at) => at % STEP === 0 || at > text.length - 20),
        async (at) => {
          const answer = await halfClosed(port, text.slice(0, at))
          const [status = 400, ...more] = statuses(answer)
          t.same([status, ...more], [400], `behind byte ${at}: ${JSON.stringify(answer)}`)
        },
      )
    }
    t.equal(await service.count(), 0, 'nothing is stored')
  })

  await t.test(`${name}: the poison is one`, async (t) => {
    const { text } = await rawExchange(port, service.poison, { until: (got) => got.includes('}') })
    t.match(text, /^HTTP\/1\.1 20[12] /)
    t.equal(await service.count(), 1)
  })
}

await t.test('WebSockets: what is malformed', async (t) => {
  const port = Number(new URL(server.hooks).port)
  let count = 0
  /** One for each, since the newer one of a name takes the older one's place. */
  const handshake = (...more: readonly string[]) => {
    const line = `GET /relay?name=malformed-${++count}&target=http://localhost/ HTTP/1.1`
    return head(line, 'Host: localhost', ...WEB_SOCKET, ...more)
  }
  await inTurn(WRONG.webSocketBodies, async (line) => {
    const { text, closed } = await rawExchange(port, `${handshake(line)}5`, PATIENT)
    t.same(statuses(text), [400], JSON.stringify(line))
    t.ok(closed, 'the connection ends')
  })
  await inTurn(Object.entries(WRONG.frames), async ([name, hex]) => {
    const pieces = [handshake(), Buffer.from(hex, 'hex')]
    const { text, closed } = await rawExchange(port, pieces, PATIENT)
    t.same(statuses(text), [101], name)
    t.ok(closed, `${name}: the connection ends`)
  })
})

t.test('the server is well, and said nothing bad', async (t) => {
  for (const { base } of Object.values(services)) {
    t.equal((await request(`${base}/healthz`)).status, 200)
  }
  noFailureIn(t, server)
})

function whole(line: string, headers: readonly string[], body: string) {
  return head(line, ...headers, 'Host: localhost', `Content-Length: ${body.length}`) + body
}

/** The status of each answer in what came. */
function statuses(text: string) {
  return allIn(text, /HTTP\/1\.1 (\d{3}) /g).map(Number)
}

/** The last answer is an error as the service gives it elsewhere. */
function wellFormed(t: Test, text: string, { shape }: Service, name: string) {
  const last = text.slice(text.lastIndexOf('HTTP/1.1 '))
  const [answered = '', body = ''] = last.split('\r\n\r\n')
  t.match(answered, /^content-type: application\/(?:problem\+)?json/im, name)
  t.match(answered, /^x-content-type-options: nosniff/im, name)
  t.match(answered, /^x-request-id: \S/im, name)
  t.same(Object.keys(JSON.parse(body)), shape, name)
}

/** Sends bytes and ends this side; gives what comes until the server ends its own. */
function halfClosed(port: number, text: string) {
  const done = Promise.withResolvers<string>()
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let came = ''
  socket.setEncoding('latin1').on('data', (more: string) => (came += more))
  socket.on('error', () => undefined)
  socket.on('close', () => done.resolve(came))
  socket.end(text)
  return done.promise
}

/** Runs a task for each item, some at a time. */
async function inTurn<T>(items: readonly T[], run: (item: T) => Promise<void>) {
  const left = [...items]
  async function work() {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}
