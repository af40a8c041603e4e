import { validateHeaderName, validateHeaderValue } from 'node:http'
import { urlToHttpOptions } from 'node:url'
import Type from 'typebox'
import { memberAt, parseJson, readMember } from '../../../kernel/json.ts'
import { redactLine, type Redact } from '../redact.ts'
import { defineCheck, failed, HttpAddress, passed, type Mistake } from './check.ts'
import { exchange } from './exchange.ts'
import { CaFile, Days, daysLeft, trustOf } from './tls.ts'

/** How much of a body is searched. */
const BODY_BYTES = 256 * 1024
/** Characters of a member's value in a message. */
const MAX_VALUE = 100
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
/** Bodies are searched as they come, so they must not be compressed. */
const HEADERS = { 'user-agent': 'gatehouse-probe', accept: '*/*', 'accept-encoding': 'identity' }
const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE']

type Status = number | string
const takes = {
  url: HttpAddress,
  method: Type.Optional(Type.Unsafe<(typeof METHODS)[number]>({ enum: METHODS })),
  /** They may have secrets, so they are quoted nowhere. */
  headers: Type.Optional(Type.Record(Type.String(), Type.String(), { maxProperties: 50 })),
  body: Type.Optional(Type.String({ maxLength: 64 * 1024 })),
  /** `200`, `200-299`, or a list of these. Any of 200 to 399 when absent. */
  status: Type.Optional(
    Type.Unsafe<Status | readonly Status[]>({ type: ['integer', 'string', 'array'] }),
  ),
  contains: Type.Optional(Type.String()),
  /** Texts that follow each other in the body, with `*` for whatever is between them. */
  pattern: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000 })),
  /** Members of the JSON in the body, such as `db.state=up`. */
  members: Type.Optional(Type.Array(Type.String({ maxLength: 500 }), { maxItems: 20 })),
  /** A slower answer is not good. */
  max_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 60_000 })),
  days: Type.Optional(Days),
  ca: Type.Optional(CaFile),
  /** Any certificate is taken. */
  insecure: Type.Optional(Type.Boolean()),
}
type HttpCheck = Type.Static<Type.TObject<typeof takes>>

/** An address answers as expected. Redirects are not followed. */
export const httpCheck = defineCheck('http', {
  takes,
  level: 'critical',
  nameOf: ({ url }) => `http ${url}`,
  mistakeOf: (check) => bodyMistake(check) ?? addressMistake(check) ?? expectedMistake(check),
  async run(check, { signal, redact }) {
    const { url, method = 'GET', headers, body, max_ms, days, ca, insecure } = check
    const trust = await trustOf(ca)
    if ('state' in trust) return trust
    const ranges = rangesOf(check.status ?? '200-399') ?? []
    const isExpected = (status: number): boolean =>
      ranges.some(([from, to]) => status >= from && status <= to)
    const isSearched = [check.contains, check.pattern, check.members].some(Boolean)
    const started = performance.now()
    const answer = await exchange({
      ...urlToHttpOptions(new URL(url)),
      ...trust,
      method,
      headers: { ...HEADERS, ...headers },
      rejectUnauthorized: insecure !== true,
      signal,
      body,
      answerBytes: (status) => (isSearched && isExpected(status) ? BODY_BYTES : 0),
    })
    const ms = Math.round(performance.now() - started)
    const answered = `answered ${answer.status}`
    if (!isExpected(answer.status)) {
      return failed(`${answered}, expected ${describeRanges(ranges)}`)
    }
    const problem = isSearched ? bodyProblem(check, answer.body.toString('utf8'), redact) : ''
    if (problem !== '') return failed(`${answered}${problem}`)
    if (max_ms !== undefined && ms > max_ms) {
      return failed(`${answered} in ${ms} ms, expected ${max_ms} ms at most`)
    }
    const { valid_to } = answer
    if (days !== undefined && valid_to !== undefined && daysLeft({ valid_to }) < days) {
      const left = Math.floor(daysLeft({ valid_to }))
      return failed(
        `${answered}, the certificate is valid for ${left} more days, expected ${days}`,
      )
    }
    return passed(answered)
  },
})

/** What a body lacks, to be read after the status; empty if it has everything. */
function bodyProblem(check: HttpCheck, text: string, redact: Redact): string {
  const { contains, pattern, members = [] } = check
  if (contains !== undefined && !text.includes(contains)) return ` without "${contains}"`
  if (pattern !== undefined && !matches(text, pattern)) return ` without a match of "${pattern}"`
  if (members.length === 0) return ''
  const json = parseJson(text)
  if (json === undefined) return `, but not with JSON of ${BODY_BYTES / 1024} KiB at most`
  for (const member of members) {
    const [path = '', expected] = readMember(member) ?? []
    const value = memberAt(json, path)
    if (value === undefined) return ` without the member ${path}`
    const found = typeof value === 'string' ? value : JSON.stringify(value)
    if (found === expected) continue
    return `, ${path} is "${redactLine(found, MAX_VALUE, redact)}", expected "${expected}"`
  }
  return ''
}

/** Finds the pieces in their order. It is no regular expression: one could stall the thread. */
function matches(text: string, pattern: string): boolean {
  let at = 0
  return pattern.split('*').every((piece) => {
    const found = text.indexOf(piece, at)
    at = found + piece.length
    return found >= 0
  })
}

/** The first and the last status of each range; undefined if one is no status. */
function rangesOf(status: Status | readonly Status[]) {
  const all = typeof status === 'object' ? status : [status]
  const ranges = all.flatMap((one) => {
    const [, from, to = from] = /^([1-5]\d\d)(?:-([1-5]\d\d))?$/.exec(String(one)) ?? []
    return from === undefined || to === undefined ? [] : [[Number(from), Number(to)] as const]
  })
  const isWhole = ranges.length === all.length && ranges.length > 0
  return isWhole && ranges.every(([from, to]) => from <= to) ? ranges : undefined
}

function describeRanges(ranges: readonly (readonly [number, number])[]): string {
  return ranges.map(([from, to]) => (from === to ? from : `${from} to ${to}`)).join(' or ')
}

function addressMistake(check: HttpCheck): Mistake | undefined {
  const url = URL.canParse(check.url) ? new URL(check.url) : undefined
  // Events quote it.
  if (url === undefined || url.username !== '' || url.password !== '') {
    return ['/url', 'must be a URL without user and password']
  }
  const { days, ca, insecure, headers = {} } = check
  const ofTls = firstGiven({ days, ca, insecure })
  if (url.protocol === 'http:' && ofTls !== undefined) {
    return [`/${ofTls}`, 'must not be there without https in the url']
  }
  if (ca !== undefined && insecure === true) return ['/ca', 'must not be there with insecure']
  return areHeaders(headers)
    ? undefined
    : ['/headers', 'must be names of HTTP headers with values of one line']
}

/** Whether these can be the headers of a request. */
export function areHeaders(headers: Readonly<Record<string, string>>): boolean {
  return Object.entries(headers).every(isHeader)
}

function isHeader([name, value]: readonly [string, string]): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}

function bodyMistake({ method = 'GET', ...check }: HttpCheck): Mistake | undefined {
  if (check.body !== undefined && !WITH_BODY.includes(method)) {
    return ['/body', `must not be there without the method ${WITH_BODY.join(', ')}`]
  }
  const { contains, pattern, members } = check
  const searched = firstGiven({ contains, pattern, members })
  if (method !== 'HEAD' || searched === undefined) return undefined
  return [`/${searched}`, 'must not be there with the method HEAD, which has no body']
}

/** The name of the first property that is there. */
function firstGiven(properties: object): string | undefined {
  return Object.entries(properties).find(([, value]) => value !== undefined)?.[0]
}

function expectedMistake({ status, members = [] }: HttpCheck): Mistake | undefined {
  if (status !== undefined && rangesOf(status) === undefined) {
    return ['/status', 'must be such as 200, "200-299", or a list of these']
  }
  const at = members.findIndex((member) => readMember(member) === undefined)
  return at < 0 ? undefined : [`/members/${at}`, 'must be path=value, such as db.state=up']
}
