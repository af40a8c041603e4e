import fc from 'fast-check'
import type { Test } from 'tap'
import * as Type from '../../kernel/schema.ts'
import type { TObject, TSchema } from '../../kernel/schema.ts'
import { Check } from 'typebox/schema'
import type { Route } from '../../kernel/http/router.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { request, type Response } from '../helpers/http.ts'
import { extent, ROOT } from '../helpers/program.ts'
import type { ServerProcess } from '../helpers/server-process.ts'
import { newSeed } from '../helpers/until.ts'
import {
  hasMembers,
  MARKER,
  nearlyValid,
  ODD,
  oddText,
  valid,
  type Known,
  type Shape,
} from './fuzz-values.ts'
import { MODERN, modern, type Endpoint } from '../helpers/mcp.ts'

/** A busy machine holds the thread, too: warnings of that would make the tests depend on time. */
export const UNWATCHED = { GATEHOUSE_WATCHDOG_S: '0' }

export type Headers = Record<string, string>

/** A request, before its caller's headers are added. */
export type Sent = {
  route: Route
  path: string
  headers: Headers
  body: string | Uint8Array | undefined
  caller: string
  /** The body does not fit its schema, so that it must be refused. */
  mustFail: boolean
  /** The path may lead to another route. */
  strays: boolean
}

/** A running service, and what its declarations do not say. */
type Subject = {
  server: ServerProcess
  base: string
  routes: readonly Route[]
  /** Schemas of bodies that handlers read by themselves, by route: `POST /path`. */
  bodies: Record<string, TSchema>
  /** By the name of a member or parameter; `links/:id` is the one below `/links/`. */
  known: Known
  /** The headers of each caller. */
  callers: Record<string, (sent: Sent) => Headers>
  /** The caller who may do most on a route. */
  best: (route: Route) => string
  /** Creates again what requests have removed. */
  refresh: () => Promise<void>
  /** The schema of errors below a path, by media type. */
  faults: (path: string) => Record<string, TSchema>
  secrets: readonly string[]
}

const RUNS = extent({
  short: { postgres: 250, embedded: 50 },
  long: { postgres: 5_000, embedded: 600 },
})
const MAX_TRIES = 60
const JSON_TYPE = 'application/json'
/** Paths for programs: their errors are never pages. */
const NO_PAGES = /^\/(?:api\/v1|v1|webhooks)\//
const FORM_TYPE = 'application/x-www-form-urlencoded'

/** What is the same on each service. */
const DOCS: Known = {
  'docs/:name': fc.constant('security'),
  'decisions/:name': fc.constant('002-directory-lock'),
  'pictures/:name': fc.constant('hooks-home.png'),
}
/** Where the parts of a form with a file end. */
const BOUNDARY = '-fuzz-'

const ENDINGS = [...ODD.endings, 'x'.repeat(9_000)]
const ODD_TYPES = ['', JSON_TYPE, FORM_TYPE, 'text/plain', 'application/json; charset=utf-16', ';']
/** Bodies of the wrong shape or encoding, too deep, too large. */
const oddBody: fc.Arbitrary<string | Uint8Array> = fc.oneof(
  { weight: 2, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 60 }) },
  {
    weight: 6,
    arbitrary: fc.constantFrom<string | Uint8Array>(
      ...ODD.bodies,
      '['.repeat(50_000),
      '{"a":'.repeat(50_000),
      Buffer.from('{"a":"\xff\xfe"}', 'latin1'),
      Buffer.from('{}', 'utf16le'),
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom(70_000, 1_200_000).map((size) => 'x'.repeat(size)) },
)
/** Headers that change an answer, with values that no client means. */
const oddHeader: fc.Arbitrary<Headers> = fc
  .tuple(
    fc.constantFrom(...ODD.headerNames),
    fc.constantFrom(...ODD.headerValues, MARKER, 'x'.repeat(4_000)),
  )
  .map(([name, value]) => ({ [name]: value }))
/** What tells of the inside: places in the code, words and names of the database. */
const INSIDES: readonly RegExp[] = [
  /\bat (?:async )?[\w.<>]+ \(?(?:file|node|\/)[^\n]*:\d+:\d+|node:internal|node_modules\//,
  new RegExp(ROOT.replaceAll(/[/.]/g, '\\$&')),
  /\b(?:Type|Range|Syntax|Reference|URI|Postgres)Error\b|\bERR_[A-Z_]{4,}\b|SQLSTATE/,
  /violates [\w-]+ constraint|duplicate key value|invalid (?:input syntax|byte sequence)/,
  /out of range for type|(?:relation|column|constraint|function) "\w+"|syntax error at or near/,
  /\b\w+_(?:pkey|fkey|check)\b|\bpg_\w+|\bselect .{1,200} from (?:hooks|links|ops)\./,
]

/** Stands for all that routes are made of, when only their declarations are read. */
export const INERT: unknown = new Proxy(() => undefined, { get: () => INERT, apply: () => INERT })

/**
 * Sends every route valid requests, until one succeeds, and then nearly valid ones to all. Each answer must
 * keep what the declarations promise. A failure prints its seed: GATEHOUSE_TEST_SEED=… repeats it.
 */
export async function fuzz(t: Test, backend: 'postgres' | 'embedded', subject: Subject) {
  const seed = newSeed()
  const succeeded = new Set<Route>()
  let [requests, plays, last] = [0, 0, '']
  let statuses: number[] = []

  async function play(all: readonly Sent[]) {
    if (plays++ % 10 === 0) await subject.refresh()
    await Promise.all(
      all.map(async (sent) => {
        requests++
        const answer = await send(sent, subject)
        const broken = [...brokenPromises(answer, sent, subject)]
        last = `${describe(sent)} answered ${answer.status}: ${answer.text.slice(0, 500)}`
        statuses.push(answer.status)
        if (broken.length > 0) throw new Error(`${broken.join('; ')}: ${last}`)
        if (answer.status < 400) succeeded.add(sent.route)
      }),
    )
  }

  async function hold<T>(property: fc.IAsyncProperty<T>, numRuns: number, from: number) {
    const { failed, errorInstance } = await fc.check(property, { numRuns, seed: from })
    if (failed) throw new Error(`seed ${seed}: ${String(errorInstance)}`)
  }

  for (const route of subject.routes.filter(({ webSocketOf }) => webSocketOf === undefined)) {
    const property = fc.asyncProperty(validRequest(route, subject), (sent) => play([sent]))
    statuses = []
    for (let tries = 0; tries < MAX_TRIES && !succeeded.has(route); tries++) {
      await hold(property, 1, seed + tries)
    }
    const answers = `seed ${seed}: ${statuses.join()}; the last: ${last}`
    const more = succeeded.has(route) ? '' : `; ${answers}`
    t.ok(succeeded.has(route), `a valid ${route.method} ${route.path} succeeds${more}`)
  }
  const nearly = fc.oneof(...subject.routes.map((route) => nearlyValidRequest(route, subject)))
  const together = fc.array(nearly, { minLength: 1, maxLength: 5 })
  await hold(fc.asyncProperty(together, play), RUNS[backend], seed)

  const loud = subject.server.logs().filter((line) => /"level":"(?:warn|error|fatal)"/.test(line))
  t.same(loud.slice(0, 5), [], 'no warning and no error is logged')
  t.comment(`${requests} requests to ${subject.routes.length} routes, seed ${seed}`)
}

/** A request that fits what the route declares, of who may do most there. */
function validRequest(route: Route, subject: Subject) {
  const { known } = subject
  const { method, path, query = { type: 'object' } } = route
  const body = subject.bodies[`${method} ${path}`] ?? route.body
  const params = path.split('/').map((part, at, parts) => {
    if (!part.startsWith(':')) return fc.constant(part)
    const name = part.slice(1)
    const place = `${parts[at - 1]}/${part}`
    const value = DOCS[place] ?? known[place] ?? known[name]
    return (value ?? valid(route.params?.[name] ?? { type: 'string' }, known)).map(encode)
  })
  return fc
    .record({
      path: fc.tuple(...params).map((parts) => parts.join('/')),
      query: valid(query, known),
      body: body === undefined ? fc.constant(undefined) : valid(body, known),
      accept: fc.constantFrom<Headers>(
        {},
        { accept: JSON_TYPE },
        { accept: 'text/html' },
        { 'hx-request': 'true' },
      ),
    })
    .map(({ path: target, query: search, body: value, accept }) => ({
      route,
      mustFail: false,
      strays: false,
      caller: subject.best(route),
      // Cursors are of a list as it was: those made up are odd.
      path: withQuery(target, { ...Object(search), cursor: undefined }),
      headers: { ...accept, ...(value !== undefined && { 'content-type': typeOf(route) }) },
      body: value === undefined ? undefined : encodeBody(route, value),
    }))
}

/** A valid request with one thing about it wrong or odd. */
function nearlyValidRequest(route: Route, subject: Subject) {
  const { method, path, query = { type: 'object' } } = route
  const body = subject.bodies[`${method} ${path}`] ?? route.body
  const changes: fc.Arbitrary<(sent: Sent) => Sent>[] = [
    nearlyValid(query, subject.known).map((value) => (sent) => ({
      ...sent,
      path: withQuery(sent.path.replace(/\?.*/, ''), value),
    })),
    fc.constantFrom(...ENDINGS).map((odd) => (sent) => ({
      ...sent,
      strays: true,
      path: sent.path.replace(/(\?|$)/, `${odd}$1`),
    })),
    oddHeader.map((odd) => (sent) => ({ ...sent, headers: { ...sent.headers, ...odd } })),
    fc
      .constantFrom(...Object.keys(subject.callers))
      .map((caller) => (sent) => ({ ...sent, caller })),
  ]
  if (path.includes(':')) {
    const params = path
      .split('/')
      .map((part) => (part.startsWith(':') ? oddText.map(encode) : fc.constant(part)))
    changes.push(
      fc.tuple(...params).map((parts) => (sent) => ({
        ...sent,
        strays: parts.includes(''),
        path: parts.join('/'),
      })),
    )
  }
  if (method !== 'GET') {
    const raw = fc.record({ body: oddBody, type: fc.constantFrom(typeOf(route), ...ODD_TYPES) })
    changes.push(
      raw.map(({ body: bytes, type }) => (sent) => ({
        ...sent,
        body: bytes,
        headers: { ...sent.headers, 'content-type': type },
      })),
    )
  }
  if (hasMembers(body)) {
    const members = nearlyValid(body, subject.known).map((value) => (sent: Sent) => ({
      ...sent,
      body: encodeBody(route, value),
      mustFail:
        isOperation(route) && !Check(route.body ?? {}, JSON.parse(encodeBody(route, value))),
    }))
    changes.push(members, members, members, members)
  }
  return fc
    .tuple(validRequest(route, subject), fc.oneof(...changes))
    .map(([sent, change]) => change(sent))
}

function send(sent: Sent, { base, callers }: Subject) {
  const { route, path, headers, body, caller } = sent
  return request(base, {
    method: route.method,
    path,
    secretShown: true,
    streamHead: true,
    timeoutMs: 90_000,
    headers: { ...headers, ...callers[caller]?.(sent) },
    ...(body !== undefined && { body }),
  })
}

/** Of an operation also what its document says. */
function* brokenPromises(answer: Response, sent: Sent, subject: Subject) {
  const { status, headers, text } = answer
  const type = String(headers['content-type'] ?? '').split(';')[0] ?? ''
  if (status >= 500) yield 'it fails'
  if (sent.mustFail && status < 400) yield 'a body that does not fit is accepted'
  if (headers['x-content-type-options'] !== 'nosniff') yield 'no nosniff'
  if (!/^\S+$/.test(headers['x-request-id']?.toString() ?? '')) yield 'no x-request-id'
  if (headers['x-fuzz-injected'] !== undefined) yield 'a header came from the request'
  if (status === 401 && !sent.path.startsWith('/webhooks/') && !headers['www-authenticate']) {
    yield '401 without WWW-Authenticate'
  }
  if (type === 'text/html') {
    const policy = String(headers['content-security-policy'])
    if (!/default-src '(?:self|none)'/.test(policy) || policy.includes('unsafe-'))
      yield 'no policy'
    // The help of links has one address of this kind: a bookmark to drag.
    const others = text.replace('href="javascript:void open(', '')
    if (/<x-fuzz|\s(?:on\w+|style)="|(?:href|src|action)="\s*javascript:/.test(others))
      yield 'not escaped'
  }
  const shown = JSON.stringify(headers) + text
  if (subject.secrets.some((secret) => shown.includes(secret))) yield 'it shows a secret'
  // The documentation has such names by right.
  const mayName = /^text\/(?:javascript|css)/.test(type) || sent.path.startsWith('/-/docs/')
  const inside = mayName ? undefined : INSIDES.find((one) => one.test(shown))
  if (inside !== undefined) yield `it shows what is inside: ${inside.exec(shown)?.[0]}`
  if (status >= 400 && (type !== 'text/html' || NO_PAGES.test(sent.path))) {
    const schema = subject.faults(sent.path)[type]
    if (schema === undefined || !Check(schema, parsed(text))) yield 'not the shape of an error'
  }
  if (!isOperation(sent.route) || sent.strays) return
  const { replies, refusals } = sent.route
  const reply = replies[status]
  if (reply === undefined && !refusals.includes(status)) yield 'its status is not documented'
  if (reply?.schema === undefined) return
  const isJson = type === JSON_TYPE
  if (type !== (reply.type ?? JSON_TYPE) || (isJson && !Check(reply.schema, parsed(text))))
    yield 'its body is not as documented'
}

function describe({ route, path, headers, body = '', caller }: Sent) {
  const parts = [path, JSON.stringify(headers), String(body)].map((part) => part.slice(0, 500))
  return `${route.method} ${parts.join(' ')} by ${caller}`
}

function isOperation(route: Route): route is Operation {
  return 'refusals' in route
}

function typeOf(route: Route) {
  const isJson = isOperation(route) || /^\/(?:v1|mcp|webhooks)\//.test(route.path)
  if (isJson) return JSON_TYPE
  return hasFile(route) ? `multipart/form-data; boundary=${BOUNDARY}` : FORM_TYPE
}

function hasFile({ body }: Route) {
  const { properties = {} }: Shape = body ?? {}
  return Object.values(properties).some((schema) => 'contentEncoding' in schema)
}

function encodeBody(route: Route, value: unknown) {
  if (typeof value === 'string' || typeOf(route) === JSON_TYPE)
    return typeof value === 'string' ? value : JSON.stringify(value)
  return hasFile(route) ? partsOf(value) : fieldsOf(value)
}

function partsOf(value: unknown) {
  const parts = Object.entries(Object(value)).map(([name, one]) => {
    const file = name === 'file' ? '; filename="links.csv"' : ''
    const head = `Content-Disposition: form-data; name="${name}"${file}`
    return `--${BOUNDARY}\r\n${head}\r\n\r\n${String(one)}\r\n`
  })
  return `${parts.join('')}--${BOUNDARY}--\r\n`
}

/** As forms and queries are written: a list is a field for each item. */
function fieldsOf(value: unknown) {
  const given = Object.entries(Object(value)).filter(([, one]) => one !== undefined)
  const fields = given.flatMap(([name, one]) => [one].flat().map((item) => [name, String(item)]))
  return new URLSearchParams(fields).toString()
}

function withQuery(path: string, query: unknown) {
  const fields = fieldsOf(query)
  return fields === '' ? path : `${path}?${fields}`
}

function encode(text: unknown) {
  return encodeURIComponent(String(text).toWellFormed())
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An error as the tool protocol has it. */
export const RPC_FAULT = Type.Object({ jsonrpc: Type.Literal('2.0'), error: Type.Object({}) })

/** Calls of the tools that an endpoint lists. */
export async function toolCalls(endpoint: Endpoint): Promise<TSchema> {
  const listed = await modern(endpoint, 'tools/list')
  const { result } = listed.json<{
    result: { tools: { name: string; inputSchema: Partial<TObject> }[] }
  }>()
  const calls = result.tools.map(({ name, inputSchema }) => {
    const members = Object.keys(inputSchema.properties ?? {})
    // A call without its timeout would take most of a minute.
    const required = members.includes('timeout_s') ? members : inputSchema.required
    const args = { ...inputSchema, ...(required && { required }) }
    return Type.Object({ name: Type.Literal(name), arguments: args, _meta: Type.Unknown() })
  })
  const method = Type.Literal('tools/call')
  const id = Type.Literal('a-1')
  return Type.Object({ jsonrpc: Type.Literal('2.0'), id, method, params: Type.Union(calls) })
}

/** Headers of a tool call, which repeat what its body says. */
export function toolHeaders({ token }: Endpoint, { body = '' }: Sent) {
  const [, name] = /"params":\{"name":"(\w+)"/.exec(String(body)) ?? []
  const version = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call' }
  return { authorization: `Bearer ${token}`, ...version, ...(name && { 'mcp-name': name }) }
}
