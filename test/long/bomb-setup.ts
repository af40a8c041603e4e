import { connect } from 'node:net'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import type { LinksServer } from '../helpers/links.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { inventoryFile, opsServer } from '../helpers/ops.ts'
import type { OpsServer } from '../helpers/ops.ts'
import type { Owner } from '../helpers/owner.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import type { ServerProcess } from '../helpers/server-process.ts'
import { SIGNED_ENV, addProvider, eventIds } from '../helpers/hooks.ts'
import { WEB_SOCKET } from '../faults/malformed-frames.ts'
import { head } from '../faults/malformed-requests.ts'

/** The largest delivery here: small, so that many of them fit into a short test. */
export const HOOKS_LIMIT = 2 * 1024 * 1024

/** A route that bombs are sent to. */
export type Target = {
  readonly service: keyof typeof SHAPES
  readonly line: string
  readonly headers: readonly string[]
  /** What it takes at most; undefined where it reads no body. */
  readonly limit?: number
}

/** The members of an error, by service. */
const SHAPES = {
  hooks: ['type', 'title', 'status', 'detail', 'instance'],
  links: ['error', 'code'],
  ops: ['error'],
} as const

export type Bombed = {
  readonly server: ServerProcess
  readonly links: LinksServer
  readonly ops: OpsServer
  readonly targets: Readonly<Record<string, Target>>
  /** Authorization of each service's API. */
  readonly bearer: Readonly<Record<'links' | 'ops' | 'mcp', string>>
  portOf(service: Target['service']): number
  /** Everything that bombs might have left: events, links, memories and sessions. */
  stored(): Promise<readonly number[]>
}

/** All three services, each with what its routes need to read a body. */
export async function startBombed(t: Owner): Promise<Bombed> {
  const [embedded] = backends
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
  const links = linksServer(server, env)
  const caller = await links.user('ann')
  const ops = opsServer(server, env)
  const bearer = { links: `Bearer ${caller.token}`, ops: `Bearer ${key}` }
  const all = { ...bearer, mcp: `Bearer ${endpoint.token}` }

  const json = 'Content-Type: application/json'
  const form = 'Content-Type: application/x-www-form-urlencoded'
  const mib = 1024 * 1024
  const targets: Record<string, Target> = {
    generic: {
      ...{ service: 'hooks', line: 'POST /webhooks/generic/lan', headers: [json] },
      limit: HOOKS_LIMIT,
    },
    signed: {
      ...{ service: 'hooks', line: 'POST /webhooks/code_host', headers: [json] },
      limit: HOOKS_LIMIT,
    },
    tools: {
      ...{ service: 'hooks', line: 'POST /mcp/agent', limit: mib },
      headers: [json, `Authorization: ${all.mcp}`],
    },
    relay: {
      ...{ service: 'hooks', line: 'GET /relay?name=bomb&target=http://localhost/' },
      headers: WEB_SOCKET,
    },
    'hooks form': {
      ...{ service: 'hooks', line: 'POST /settings', headers: [form], limit: mib / 16 },
    },
    'links API': {
      ...{ service: 'links', line: 'POST /api/v1/links', limit: mib / 16 },
      headers: [json, `Authorization: ${all.links}`],
    },
    'links form': {
      ...{ service: 'links', line: 'POST /-/new', headers: [form], limit: mib / 16 },
    },
    resolver: { service: 'links', line: 'GET /docs', headers: [] },
    'ops API': {
      ...{ service: 'ops', line: 'POST /api/v1/memories', headers: [json], limit: mib },
    },
    'ops form': {
      ...{ service: 'ops', line: 'POST /memories', headers: [form], limit: mib },
    },
    'ops webhook': {
      ...{ service: 'ops', line: 'POST /api/v1/webhook', limit: mib },
      headers: [json, `Authorization: ${all.ops}`],
    },
    chat: {
      ...{ service: 'ops', line: 'POST /v1/chat/completions', limit: mib },
      headers: [json, `Authorization: ${all.ops}`],
    },
  }
  return {
    ...{ server, links, ops, targets, bearer: all },
    portOf: (service) => Number(new URL(server[service]).port),
    async stored() {
      const { json: mine } = await caller.api<{ links: unknown[] }>('GET', '/links')
      const kept = await ops.api<{ memories: unknown[] }>('GET', '/memories')
      const { json: run } = await ops.api<{ sessions: { trigger: string }[] }>('GET', '/sessions')
      const asked = run.sessions.filter(({ trigger }) => trigger !== 'schedule')
      const events = await eventIds(server.hooks)
      return [events.length, mine.links.length, kept.json.memories.length, asked.length]
    },
  }
}

/** The head of a request to a target. */
export function headOf({ line, headers }: Target, ...more: readonly string[]): string {
  return head(`${line} HTTP/1.1`, 'Host: localhost', ...headers, ...more)
}

/** The only answer has this status, and an error in the shape of the service. */
export function refuses(
  t: Test,
  text: string,
  { service }: Target,
  status: number,
  what: string,
): void {
  const [head = '', body = ''] = text.split('\r\n\r\n')
  const [first, ...more] = text.matchAll(/HTTP\/1\.1 (\d{3}) /g)
  t.equal(first?.[1], String(status), what)
  t.equal(more.length, 0, `${what}: one answer`)
  t.match(head, /^content-type: application\/(?:problem\+)?json/im, what)
  t.match(head, /^x-content-type-options: nosniff/im, what)
  const parsed: unknown = JSON.parse(body)
  t.same(Object.keys(parsed ?? {}), SHAPES[service], what)
}

/** All three services answer. */
export async function isWell(t: Test, { server }: Bombed, what: string): Promise<void> {
  for (const base of [server.hooks, server.links, server.ops]) {
    t.equal((await request(`${base}/healthz`)).status, 200, `healthz behind ${what}`)
  }
}

/**
 * Sends a head, and then a piece over and over, as fast as the other side takes it, until so many
 * bytes have gone or the connection ends; then `last`. Gives what came back.
 */
export function flood(
  port: number,
  start: string,
  piece: string | Buffer,
  most: number,
  last = '',
): Promise<{ readonly text: string; readonly sent: number; readonly closed: boolean }> {
  const done = Promise.withResolvers<boolean>()
  const socket = connect({ port, host: '127.0.0.1' })
  const timer = setTimeout(() => done.resolve(false), 30_000)
  let [text, sent] = ['', 0]
  socket.setEncoding('latin1').on('data', (more: string) => (text += more))
  socket.on('error', () => undefined)
  socket.on('close', () => done.resolve(true))
  function go(): void {
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
