import type { Static, TSchema } from '../../../../kernel/schema.ts'
import { Fault } from '../../../../kernel/fault.ts'
import type { Outbound, OutboundResult } from '../../../../kernel/net/outbound.ts'
import { parseLongIds } from '../../../../kernel/json-text.ts'
import { fits } from '../../../../kernel/validate.ts'
import { readRetryAfter } from '../../../../kernel/net/retry-after.ts'

/** The API of a sender, as one run calls it. */
export interface SenderApi extends Outbound {
  /** Where it is; paths are appended. */
  url: URL
  token: string
  now: () => Date
  /** Ends the run. */
  signal: AbortSignal
}

/** A page of a list. */
interface Page<T> {
  value: T
  /** The query of the next page, from the answer's header `Link`. */
  next: URLSearchParams | undefined
}

/** How long one look may take. */
export const MAX_LOOK_MS = 5 * 60_000
const REQUEST_MS = 30_000
/** Stripe lists whole events, 50 on a page. */
const MAX_ANSWER = 8 * 1024 * 1024
const MIB = 1024 * 1024
/** What GitHub's documentation asks for where an answer does not say how long to wait. */
const LIMITED_S = 60
/** The longest wait that a sender may ask for. */
const MAX_WAIT_S = 24 * 3_600

/** Reads a page of a list. Throws a `Fault` if the answer has another form. */
export async function readPage<S extends TSchema>(
  api: SenderApi,
  schema: S,
  path: string,
  query: URLSearchParams,
): Promise<Page<Static<S>>> {
  const url = addressOf(api, path)
  url.search = query.toString()
  const result = await api.get({ ...requestOf(api, url), answerBytes: MAX_ANSWER + 1 })
  const { body, headers } = acceptedAnswer(api, result)
  if (body.length > MAX_ANSWER) {
    throw apiFault(`${api.url.host} answered with more than ${MAX_ANSWER / MIB} MiB`)
  }
  const value = parseLongIds(body.toString('utf8'))
  if (!fits(schema, value)) {
    throw apiFault(`${api.url.host} answered something else than its documentation says`)
  }
  return { value, next: nextQuery(headers['link']) }
}

/** The pages of a list, up to a number; each leads to the next one by its header `Link`. */
export async function* linkedPages<S extends TSchema>(
  api: SenderApi,
  schema: S,
  path: string,
  max: number,
): AsyncGenerator<{ value: Static<S>; isLast: boolean }> {
  let query = new URLSearchParams({ per_page: '100' })
  for (let pages = 0; pages < max; pages++) {
    const { value, next } = await readPage(api, schema, path, query)
    yield { value, isLast: next === undefined }
    if (next === undefined) return
    query = next
  }
}

/** Posts without a body. Throws a `Fault` where that is not accepted. */
export async function postEmpty(api: SenderApi, path: string): Promise<void> {
  const request = requestOf(api, addressOf(api, path))
  const result = await api.post({ ...request, body: Buffer.alloc(0), answerBytes: MIB })
  acceptedAnswer(api, result)
}

function addressOf({ url }: SenderApi, path: string): URL {
  return new URL(url.href.replace(/\/$/, '') + path)
}

function requestOf({ token, signal }: SenderApi, url: URL) {
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    'user-agent': 'gatehouse',
    // Of GitHub; others ignore it.
    'x-github-api-version': '2022-11-28',
  }
  // An operator has named the API: GitHub Enterprise may be on a private network.
  return { url, headers, signal, timeoutMs: REQUEST_MS, trusted: true }
}

type Answered = Extract<OutboundResult, { kind: 'answered' }>

function acceptedAnswer(api: SenderApi, result: OutboundResult): Answered {
  const { host } = api.url
  if (api.signal.aborted) throw apiFault(`${host} was asked for ${MAX_LOOK_MS / 60_000} minutes`)
  if (result.kind !== 'answered') throw apiFault(`${host} can't be reached: ${result.reason}`)
  const { status } = result
  if (status >= 200 && status < 300) return result
  const waitMs = limitMs(result, api.now())
  if (waitMs !== undefined) throw limited(host, status, waitMs)
  const reasons: Readonly<Record<number, string>> = {
    401: 'does not accept the token',
    403: 'does not let the token do that',
    404: 'does not have it, or does not show it to the token',
  }
  const moved = status >= 300 && status < 400 ? 'has it under another name now' : undefined
  const reason = reasons[status] ?? moved ?? 'refuses the request'
  throw apiFault(`${host} ${reason} (${status})`, status)
}

/** How long an answer asks to wait; undefined where it is not about a limit of requests. */
function limitMs({ status, headers, body }: Answered, now: Date): number | undefined {
  if (status !== 403 && status !== 429) return undefined
  const waitMs = readRetryAfter(headers['retry-after'], now, MAX_WAIT_S)
  if (waitMs !== undefined) return waitMs
  const { 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset } = headers
  if (remaining === '0' && typeof reset === 'string' && /^\d{1,11}$/.test(reset)) {
    return readRetryAfter(new Date(Number(reset) * 1_000).toUTCString(), now, MAX_WAIT_S)
  }
  // A second kind of limit of GitHub's has a message alone.
  return status === 429 || /rate limit/i.test(body.toString()) ? LIMITED_S * 1_000 : undefined
}

function limited(host: string, status: number, waitMs: number): Fault {
  const seconds = Math.ceil(waitMs / 1_000)
  const message = `${host} limits requests (${status}): nothing is asked for ${seconds} s`
  return new Fault(429, 'LIMITED', message, { headers: { 'retry-after': String(seconds) } })
}

/** What an API did not do; `status` is its answer's. */
function apiFault(message: string, status = 502): Fault {
  return new Fault(status, 'SENDER_API', message)
}

/** The query of the next page. The rest of the link is left alone: a token must not follow it. */
function nextQuery(link: string | string[] | undefined): URLSearchParams | undefined {
  const text = [link ?? []].flat().join(',')
  const [, target = ''] = /<([^<>]{1,4000})>; *rel="next"/.exec(text) ?? []
  return URL.parse(target)?.searchParams
}
