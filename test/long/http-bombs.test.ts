import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { t, type Test } from 'tap'
import { head } from '../faults/malformed.ts'
import { embedded } from '../helpers/backends.ts'
import { SIGNED_ENV, addProvider, eventIds, payloadOf } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { inventoryFile, opsServer } from '../helpers/ops.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { extent } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'

// Bodies that are larger, longer or in more pieces than anybody means, at each kind of route of all three
// services: 413 or 400 in the service's own shape, on a connection that ends; nothing of them is stored,
// and the next request is answered.

const MB = 1_000_000
/** How much of a declared 100 MB is there to send; the server hears 64 MiB of it at most. */
const SENT = extent({ short: 10, long: 100 }) * MB
/** In chunks of one byte each, which cost 400 times as much when they are kept as they come. */
const ONES = extent({ short: 600_000, long: 2_000_000 })

/** The largest delivery here. */
const HOOKS_LIMIT = 2 * 1024 * 1024

/** A route that bombs are sent to. */
type Target = {
  service: keyof typeof SHAPES
  line: string
  headers: readonly string[]
  /** What it takes at most; undefined where it reads no body. */
  limit?: number
}

/** The members of an error, by service. */
const SHAPES = {
  hooks: ['type', 'title', 'status', 'detail', 'instance'],
  links: ['error', 'code'],
  ops: ['error'],
} as const

const key = keepSecret('chat-key', `key-${'k'.repeat(40)}`)
const env = {
  ...SIGNED_ENV,
  ...(await embedded.env(t)),
  HOOKS_MAX_BODY: String(HOOKS_LIMIT),
  OPS_INVENTORY: await inventoryFile(t, { services: [] }),
  OPS_CHAT_API_KEY: key,
}
const server = await startServerProcess(t, { env })
await addProvider(server.hooks, 'lan', { open: true })
const endpoint = await addEndpoint(server.hooks, 'agent')
const caller = await linksServer(server, env).user('ann')
const ops = opsServer(server, env)
const all = {
  links: `Bearer ${caller.token}`,
  ops: `Bearer ${key}`,
  mcp: `Bearer ${endpoint.token}`,
}
const json = 'Content-Type: application/json'
const form = 'Content-Type: application/x-www-form-urlencoded'
const mib = 1024 * 1024
/** Routes that read a body. */
const targets: Record<string, Target> = {
  generic: {
    service: 'hooks',
    line: 'POST /webhooks/generic/lan',
    headers: [json],
    limit: HOOKS_LIMIT,
  },
  signed: {
    service: 'hooks',
    line: 'POST /webhooks/code_host',
    headers: [json],
    limit: HOOKS_LIMIT,
  },
  tools: {
    service: 'hooks',
    line: 'POST /mcp/agent',
    limit: mib,
    headers: [json, `Authorization: ${all.mcp}`],
  },
  'hooks form': {
    service: 'hooks',
    line: 'POST /settings',
    headers: [form],
    limit: mib / 16,
  },
  'links API': {
    service: 'links',
    line: 'POST /api/v1/links',
    limit: mib / 16,
    headers: [json, `Authorization: ${all.links}`],
  },
  'links form': {
    service: 'links',
    line: 'POST /-/new',
    headers: [form],
    limit: mib / 16,
  },
  'ops API': {
    service: 'ops',
    line: 'POST /api/v1/memories',
    headers: [json],
    limit: mib,
  },
  'ops form': {
    service: 'ops',
    line: 'POST /memories',
    headers: [form],
    limit: mib,
  },
  'ops webhook': {
    service: 'ops',
    line: 'POST /api/v1/webhook',
    limit: mib,
    headers: [json, `Authorization: ${all.ops}`],
  },
  chat: {
    service: 'ops',
    line: 'POST /v1/chat/completions',
    limit: mib,
    headers: [json, `Authorization: ${all.ops}`],
  },
}
const portOf = (service: Target['service']) => Number(new URL(server[service]).port)

/** Everything that bombs might have left: events, links and memories. */
async function stored() {
  const { json: mine } = await caller.api<{ links: unknown[] }>('GET', '/links')
  const kept = await ops.api<{ memories: unknown[] }>('GET', '/memories')
  const events = await eventIds(server.hooks)
  return [events.length, mine.links.length, kept.json.memories.length]
}

await t.test('bodies', async (t) => {
  const piece = 'x'.repeat(65_536)
  const extension = 'x'.repeat(20_000)
  // At once, since the rest of what was refused is heard for seconds.
  const answers = Object.entries(targets).map(async ([name, target]) => {
    const port = portOf(target.service)
    const chunked = headOf(target, 'Transfer-Encoding: chunked')
    const declared = headOf(target, `Content-Length: ${100 * MB}`, 'Connection: close')
    const large = await flood(port, declared, piece, SENT)
    refuses(t, large.text, target, 413, `${name}: 100 MB`)
    const endless = await flood(port, chunked, `10000\r\n${piece}\r\n`, Infinity)
    refuses(t, endless.text, target, 413, `${name}: chunks without end`)
    t.ok(endless.closed, `${name}: chunks without end: cut after ${endless.sent} bytes`)
    const extended = await flood(port, `${chunked}1;a=`, extension, 1)
    refuses(t, extended.text, target, 400, `${name}: a long extension`)
    t.ok(extended.closed, `${name}: a long extension: cut`)
  })
  await Promise.all(answers)
  for (const base of [server.hooks, server.links, server.ops]) {
    t.equal((await request(`${base}/healthz`)).status, 200)
  }
})

await t.test('one-byte chunks', async (t) => {
  const { generic } = targets
  if (generic === undefined) throw new Error('there is no target generic')
  const start = headOf(generic, 'Transfer-Encoding: chunked', 'Connection: close')
  const many = '1\r\nx\r\n'.repeat(ONES / 100)
  const { text } = await flood(portOf('hooks'), start, many, ONES * 6, '0\r\n\r\n')
  t.match(text, /^HTTP\/1\.1 202 /)
  const id = Number(/"id":(\d+)/.exec(text)?.[1])
  t.ok((await payloadOf(server.hooks, id)).equals(Buffer.alloc(ONES, 'x')), 'stored as it came')
})

await t.test('compressed bodies are never inflated', async (t) => {
  const bomb = gzipSync(Buffer.alloc(extent({ short: 50, long: 500 }) * MB, ' '))
  t.ok(bomb.length < HOOKS_LIMIT)
  // The long one is larger, as it comes, than what the API takes.
  const refused = extent({ short: /^HTTP\/1\.1 400 /, long: /^HTTP\/1\.1 (?:400|413) / })
  for (const [name, target] of Object.entries(targets)) {
    if (name.endsWith('form') || name === 'ops webhook') continue
    const length = `Content-Length: ${bomb.length}`
    const start = headOf(target, 'Content-Encoding: gzip', length, 'Connection: close')
    const { text } = await flood(portOf(target.service), start, bomb, 1)
    if (name === 'generic') {
      t.match(text, /^HTTP\/1\.1 202 /)
      const id = Number(/"id":(\d+)/.exec(text)?.[1])
      t.ok((await payloadOf(server.hooks, id)).equals(bomb), 'stored as it came')
    } else t.match(text, name === 'signed' ? /^HTTP\/1\.1 401 / : refused, name)
  }
})

t.test('what is stored, and the log', async (t) => {
  t.same(await stored(), [2, 0, 0], 'the two that were accepted')
  noFailureIn(t, server)
})

/** The head of a request to a target. */
function headOf({ line, headers }: Target, ...more: string[]) {
  return head(`${line} HTTP/1.1`, 'Host: localhost', ...headers, ...more)
}

/** The only answer has this status, and an error in the shape of the service. */
function refuses(t: Test, text: string, { service }: Target, status: number, what: string) {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const [first, ...more] = text.matchAll(/HTTP\/1\.1 (\d{3}) /g)
  t.equal(first?.[1], String(status), what)
  t.equal(more.length, 0, `${what}: one answer`)
  t.match(head, /^content-type: application\/(?:problem\+)?json/im, what)
  t.match(head, /^x-content-type-options: nosniff/im, what)
  const parsed: unknown = JSON.parse(body)
  t.same(Object.keys(parsed ?? {}), SHAPES[service], what)
}

/**
 * Sends a head, and then a piece over and over, as fast as the other side takes it, until so many
 * bytes have gone or the connection ends; then `last`. Gives what came back.
 */
function flood(port: number, start: string, piece: string | Buffer, most: number, last = '') {
  const done = Promise.withResolvers<boolean>()
  const socket = connect({ port, host: '127.0.0.1' })
  const timer = setTimeout(() => done.resolve(false), 30_000)
  let [text, sent] = ['', 0]
  socket.setEncoding('latin1').on('data', (more: string) => (text += more))
  socket.on('error', () => undefined)
  socket.on('close', () => done.resolve(true))
  function go() {
    while (sent < most && socket.writable) {
      sent += piece.length
      if (!socket.write(piece)) return
    }
    socket.off('drain', go)
    if (last !== '' && socket.writable) socket.write(last)
  }
  socket.on('drain', go)
  socket.on('connect', () => {
    socket.write(start)
    go()
  })
  return done.promise.then((closed) => {
    clearTimeout(timer)
    socket.destroy()
    return { text, sent, closed }
  })
}
