import { STATUS_CODES } from 'node:http'
import type { TSchema } from 'typebox'
import { Check } from 'typebox/value'
import type { Operation } from '../../../kernel/openapi.ts'
import type { Match, Route } from '../../../kernel/http/router.ts'
import { nameOf, type FuzzProfile } from './profile.ts'
import { isFramed, type WireAnswer, type WireRequest } from './wire.ts'
import { ROOT } from '../../helpers/program.ts'

/** What tells of the inside: places in the code, the words and names of the database. */
const INSIDES: readonly RegExp[] = [
  /\bat (?:async )?[\w.<>]+ \(?(?:file|node|\/)[^\n]*:\d+:\d+/,
  /node:internal|node_modules\/|file:\/\/\//,
  new RegExp(ROOT.replaceAll(/[/.]/g, '\\$&')),
  /\b(?:Type|Range|Syntax|Reference|URI|Aggregate|Postgres|Query)Error\b|\bERR_[A-Z_]{4,}\b/,
  /\bSQLSTATE\b|violates \w+ constraint|violates not-null|duplicate key value|deadlock detected/,
  /invalid input syntax|invalid byte sequence|unsupported Unicode escape|out of range for type/,
  /(?:relation|column|constraint|function) "\w+"|syntax error at or near|canceling statement/,
  /\b(?:hooks|links|ops)\.(?:events|providers|endpoints|attempts|forwarders|links|users|tokens)\b/,
  /\b\w+_(?:pkey|fkey|check|not_null)\b|\bpg_\w+|\bprepared statement\b/,
  /\bselect .{1,200} from (?:hooks|links|ops)\.|\binsert into |\bdelete from /i,
]
/** Files of ours that every client gets, whatever it sends; the explorer's speak of errors. */
const STATIC = /^(?:text\/javascript|text\/css|image\/svg)/
/** Of a request that never became one: no route has refused it. */
const BROKEN =
  /The request is not valid HTTP|The request headers exceed|did not arrive in time|Host header/i

/** Throws when an answer breaks a promise that every answer keeps. */
export function checkAnswer(
  answer: WireAnswer,
  request: WireRequest,
  match: Match,
  profile: FuzzProfile,
): void {
  const faults = [
    ...formFaults(answer, request),
    ...contentFaults(answer),
    ...insideFaults(answer, profile),
    ...statusFaults(answer, request, match, profile),
  ]
  if (faults.length > 0) throw new Error(faults.join('; '))
}

/** The type of its body, in lower case and without parameters. */
export function typeOf({ headers }: WireAnswer): string {
  return (headers.get('content-type')?.[0]?.split(';')[0] ?? '').toLowerCase()
}

/** True for the answer to a request that is no HTTP: it has met no route. */
export function isBroken({ status, body }: WireAnswer, request: WireRequest): boolean {
  if (status !== 400 && status !== 408 && status !== 431) return false
  // The text is not there to be looked at.
  return request.method === 'HEAD' ? isOdd(request) : BROKEN.test(body.toString('utf8'))
}

function* formFaults(answer: WireAnswer, request: WireRequest): Generator<string> {
  const { status, headers, head, body, extra, streams } = answer
  if (STATUS_CODES[status] === undefined) yield `status ${status} is none`
  if (status === 101) return
  if (headers.get('x-content-type-options')?.[0] !== 'nosniff') yield 'no nosniff'
  if (!/^\S+$/.test(headers.get('x-request-id')?.[0] ?? '')) yield 'no x-request-id'
  if (headers.has('x-fuzz-injected')) yield 'a header came from the request'
  // oxlint-disable-next-line no-control-regex -- these are what no head may have
  if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/.test(head)) yield 'control characters in the head'
  for (const name of ['content-length', 'content-type', 'location', 'x-request-id']) {
    if ((headers.get(name)?.length ?? 0) > 1) yield `${name} is said twice`
  }
  // Of a request that can't be read nobody knows that it is HEAD.
  if (extra.length > 0 && isFramed(request) && !isBroken(answer, request))
    yield `${extra.length} bytes follow the answer`
  if (body.length > 0 && typeOf(answer) === '') yield 'a body without a type'
  if (streams && typeOf(answer) !== 'text/event-stream') yield 'a stream that is none of events'
  if (status === 405 && !/^[A-Z]+(?:, [A-Z]+)*$/.test(headers.get('allow')?.[0] ?? '')) {
    yield '405 without Allow'
  }
  // Senders of webhooks sign: there is no scheme that a receiver could name.
  const signs = request.target.includes('/webhooks/')
  if (status === 401 && !signs && !headers.has('www-authenticate')) {
    yield '401 without WWW-Authenticate'
  }
  if ([301, 302, 303, 307, 308].includes(status) && !headers.has('location')) {
    yield `${status} without Location`
  }
  if (status === 503 && !headers.has('retry-after') && !/not.configured/.test(String(body))) {
    yield '503 without Retry-After'
  }
}

function* contentFaults(answer: WireAnswer): Generator<string> {
  const type = typeOf(answer)
  const text = answer.body.toString('utf8')
  if (/json/.test(type) && answer.body.length > 0 && parsed(text) === undefined) {
    yield 'its JSON can not be read'
  }
  if (!type.startsWith('text/html')) return
  const policy = answer.headers.get('content-security-policy')?.[0] ?? ''
  if (!/default-src '(?:self|none)'/.test(policy) || !/frame-ancestors 'none'/.test(policy)) {
    yield 'a page without its policy'
  }
  if (/unsafe-/.test(policy)) yield 'a policy that allows what is unsafe'
  if (!answer.headers.has('referrer-policy')) yield 'a page without a referrer policy'
  if (/<x-fuzz|x-fuzz-1["']/.test(text)) yield 'what came stands in the page as it came'
  for (const [tag] of text.matchAll(/<[a-z](?:"[^"]*"|[^">])*>/gi)) {
    const bare = tag.replaceAll(/"[^"]*"/g, '""')
    if (/\s(?:on\w+|style)\s*=/i.test(bare)) yield `inline script or style: ${tag.slice(0, 80)}`
    if (/\b(?:href|src|action)="\s*(?:javascript|data|vbscript):/i.test(tag)) {
      yield `an address that is script: ${tag.slice(0, 80)}`
    }
    if (/^<script(?![^>]*\ssrc=)/i.test(tag)) yield 'an inline script'
  }
}

function* insideFaults(answer: WireAnswer, { secrets }: FuzzProfile): Generator<string> {
  if (STATIC.test(typeOf(answer))) return
  const text = `${answer.head}\n${answer.body.toString('utf8')}`
  for (const inside of INSIDES) {
    const found = inside.exec(text)
    if (found !== null) yield `it tells of the inside: ${found[0].slice(0, 80)}`
  }
  if (secrets.some((secret) => text.includes(secret))) yield 'it tells a secret'
}

function* statusFaults(
  answer: WireAnswer,
  request: WireRequest,
  match: Match,
  profile: FuzzProfile,
): Generator<string> {
  const { status } = answer
  const route = match.kind === 'route' ? match.route : undefined
  const name = route === undefined ? '(none)' : nameOf(route)
  if (
    status >= 500 &&
    !profile.mayFail.some(
      (may) => may.status === status && (may.route === name || may.route === '*'),
    )
  ) {
    yield `${status} is documented nowhere for ${name}`
  }
  if (isBroken(answer, request)) {
    if (isFramed(request) && !isOdd(request)) yield 'a good request is called broken'
    return
  }
  if (status >= 400 && request.method !== 'HEAD') {
    const fault = profile.refusalFault(answer, request)
    if (fault !== undefined) yield `its refusal is not as it should be: ${fault}`
  }
  if (match.kind === 'none' && ![403, 404].includes(status)) yield `${status} where no route is`
  if (match.kind === 'wrong-method' && ![403, 405].includes(status)) yield `${status}, not 405`
  if (route !== undefined && isOperation(route)) yield* documentFaults(answer, request, route)
}

function* documentFaults(
  answer: WireAnswer,
  request: WireRequest,
  { id, replies, refusals }: Operation,
): Generator<string> {
  const { status } = answer
  const reply = replies[status]
  if (reply === undefined) {
    if (!refusals.includes(status)) yield `${status} is not in the document of ${id}`
    return
  }
  const { schema, type = 'application/json' } = reply
  if (schema === undefined || request.method === 'HEAD') return
  if (typeOf(answer) !== type) yield `its type is ${typeOf(answer)}, in the document ${type}`
  else if (/json/.test(type) && !fits(schema, parsed(answer.body.toString('utf8')))) {
    yield `its body is not as the document of ${id} has it`
  }
}

/** Whether a request has bytes that no parser need take, more than a head may have, or no one host. */
function isOdd({ method, target, headers }: WireRequest): boolean {
  const size = headers.reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
  const [host = ['', ''], ...more] = headers.filter(([name]) => name === 'host')
  const hosted = more.length === 0 && /^[\w.:[\]-]+$/.test(host[1])
  // oxlint-disable-next-line no-control-regex -- these are what a head may not have
  const odd = /[^\t\x20-\x7e\x80-\xff]/
  return (
    size + target.length > 15_000 ||
    !hosted ||
    !/^\/[\x21-\x7e]*$/.test(target) ||
    !/^[A-Z]+$/.test(method) ||
    /^(?:FOO|CONNECT)$/.test(method) ||
    headers.some(([name, value]) => odd.test(name + value))
  )
}

function isOperation(route: Route): route is Operation {
  return 'refusals' in route
}

function fits(schema: TSchema, value: unknown): boolean {
  return Check(schema, value)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
