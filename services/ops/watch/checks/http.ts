import { urlToHttpOptions } from 'node:url'
import { http } from '../../../../kernel/http/node-http.ts'
import * as Type from '../../../../kernel/schema.ts'
import { charsetOf } from '../../../../kernel/http/charset.ts'
import { exactText, parseExact, readMember } from '../../../../kernel/json-text.ts'
import { memberAt } from '../../../../kernel/json.ts'
import { redactLine, type Redact } from '../../redact.ts'
import { defineCheck, failed, HttpAddress, passed, type Mistake } from './check.ts'
import {
  CaFile,
  Days,
  daysLeft,
  describeEnd,
  trustOf,
  type CertificateEnd,
} from './certificates.ts'
import { exchange, type CheckAnswer } from './exchange.ts'

const MIB = 1024 * 1024
/** How much of a body is searched. */
const BODY_BYTES = MIB
const MAX_REDIRECTS = 10
/** Statuses that lead to another address, named by the header Location. */
const MOVED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Characters of the address of the last answer in a message. */
const MAX_URL = 200
/** Characters of a member's value in a message. */
const MAX_VALUE = 100
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
/** No coding is asked for: some servers send one all the same. */
const HEADERS = { 'user-agent': 'gatehouse-probe', accept: '*/*', 'accept-encoding': 'identity' }
const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE']

type Status = number | string
const takes = {
  url: HttpAddress,
  method: Type.Optional(Type.Unsafe<(typeof METHODS)[number]>({ enum: METHODS })),
  /** They may have secrets, so they are quoted nowhere. */
  headers: Type.Optional(Type.Record(Type.String(), { maxProperties: 50 })),
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
  /** Redirects that are followed; 0: the redirect itself is the answer. */
  redirects: Type.Optional(Type.Integer({ minimum: 0, maximum: MAX_REDIRECTS })),
  /** Answers are taken that break the rules of HTTP in ways that browsers bear. */
  lenient: Type.Optional(Type.Boolean()),
}
type HttpCheck = Type.Static<Type.TObject<typeof takes>>

/** An address answers as expected. */
export const httpCheck = defineCheck('http', {
  takes,
  level: 'critical',
  nameOf: ({ url }) => `http ${url}`,
  peerOf: ({ url }) => new URL(url).host,
  mistakeOf: (check) => bodyMistake(check) ?? addressMistake(check) ?? expectedMistake(check),
  async run(check, { signal, redact }) {
    const { max_ms, days, ca } = check
    const trust = await trustOf(ca)
    if ('state' in trust) return trust
    const ranges = rangesOf(check.status ?? '200-399') ?? []
    const isExpected = (status: number): boolean =>
      ranges.some(([from, to]) => status >= from && status <= to)
    const started = performance.now()
    const last = await followed(check, trust, signal, isExpected)
    const ms = Math.round(performance.now() - started)
    const at = redactLine(last.url.href, MAX_URL, redact)
    const answered = `answered ${last.answer.status}${last.hops === 0 ? '' : ` at ${at}`}`
    if (last.refused !== undefined) return failed(`${answered}, ${last.refused}`)
    if (!isExpected(last.answer.status)) {
      return failed(`${answered}, expected ${describeRanges(ranges)}`)
    }
    const problem = bodyProblem(check, last.answer, redact)
    if (problem !== '') return failed(`${answered}${problem}`)
    if (max_ms !== undefined && ms > max_ms) {
      return failed(`${answered} in ${ms} ms, expected ${max_ms} ms at most`)
    }
    const { end } = last
    if (days !== undefined && end !== undefined && daysLeft(end) < days) {
      return failed(`${answered}, ${describeEnd(end)}, expected ${days}`)
    }
    return passed(answered)
  },
})

/** Where redirects have led. */
interface Followed {
  answer: CheckAnswer
  url: URL
  hops: number
  /** Why it was not followed further; undefined at the last answer. */
  refused: string | undefined
  /** What ends first of the certificates on the way. */
  end: CertificateEnd | undefined
}

/** Sends the request, and follows redirects. Headers and a body go to the origin of the check alone. */
async function followed(
  check: HttpCheck,
  trust: { ca?: string },
  signal: AbortSignal,
  isExpected: (status: number) => boolean,
): Promise<Followed> {
  const { redirects = MAX_REDIRECTS, insecure, lenient } = check
  const first = new URL(check.url)
  let { method = 'GET', body }: Pick<HttpCheck, 'method' | 'body'> = check
  let [url, end]: [URL, CertificateEnd | undefined] = [first, undefined]
  for (let hops = 0; ; hops++) {
    const own = url.origin === first.origin ? check.headers : undefined
    const answer = await exchange({
      ...urlToHttpOptions(url),
      ...trust,
      method,
      headers: { ...HEADERS, ...own },
      rejectUnauthorized: insecure !== true,
      insecureHTTPParser: lenient === true,
      signal,
      body,
      answerBytes: (status) => (isSearched(check) && isExpected(status) ? BODY_BYTES : 0),
    })
    if (answer.end !== undefined && (end === undefined || answer.end.ends < end.ends)) {
      end = answer.end
    }
    const { location } = answer.headers
    const found = { answer, url, hops, end, refused: undefined }
    if (!MOVED.has(answer.status) || location === undefined || redirects === 0) return found
    if (hops === redirects) return { ...found, refused: `the end of ${hops} redirects` }
    const next = URL.parse(location, url)
    if (
      next === null ||
      !/^https?:$/.test(next.protocol) ||
      next.username + next.password !== ''
    ) {
      return { ...found, refused: 'whose Location leads to no address of http or https' }
    }
    // As browsers do: what was posted is then read by GET.
    if (answer.status === 303 ? method !== 'HEAD' : answer.status < 303 && method === 'POST') {
      method = 'GET'
      body = undefined
    }
    if (body !== undefined && next.origin !== first.origin) {
      return { ...found, refused: `which leads the body to ${next.origin}: it is not sent there` }
    }
    url = next
  }
}

function isSearched({ contains, pattern, members }: HttpCheck): boolean {
  return [contains, pattern, members].some(Boolean)
}

/** What a body lacks, to be read after the status; empty if it has everything. */
function bodyProblem(check: HttpCheck, answer: CheckAnswer, redact: Redact): string {
  if (!isSearched(check)) return ''
  const { contains, pattern, members = [] } = check
  const text = textOf(answer)
  const place = answer.isCut ? ` in its first ${BODY_BYTES / MIB} MiB` : ''
  if (contains !== undefined && !text.includes(contains)) return ` without "${contains}"${place}`
  if (pattern !== undefined && !matches(text, pattern)) {
    return ` without a match of "${pattern}"${place}`
  }
  if (members.length === 0) return ''
  const json = parseExact(text)
  if (json === undefined) return `, but not with JSON of ${BODY_BYTES / MIB} MiB at most`
  for (const member of members) {
    const { path = '', steps = [], value: expected = '' } = readMember(member) ?? {}
    const found = exactText(memberAt(json, steps))
    if (found === undefined) return ` without the member ${path}`
    if (found === expected) continue
    return `, ${path} is "${redactLine(found, MAX_VALUE, redact)}", expected "${expected}"`
  }
  return ''
}

/** The text of a body. A byte order mark names its charset, else the header does. */
function textOf({ body, headers }: CheckAnswer): string {
  return new TextDecoder(charsetOf(body, headers['content-type'])).decode(body)
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
    http.validateHeaderName(name)
    http.validateHeaderValue(name, value)
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
