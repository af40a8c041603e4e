import type { Test } from 'tap'
import { request } from './http.ts'
import type { RequestOptions, Response } from './http.ts'
import type { Service } from './server.ts'

/** One refused request: what is sent, the status, the code (where the API has codes), and the text or a part of it. */
export type Refusal = readonly [
  call: RefusedCall,
  status: number,
  code?: string | undefined,
  text?: string | RegExp,
]

/** `METHOD /path` alone, or with what else is sent. A body that is no text and no bytes is sent as JSON. */
export type RefusedCall =
  | string
  | {
      readonly call: string
      readonly body?: unknown
      readonly headers?: RequestOptions['headers']
    }

/** Where the requests go. */
export type Refuser = {
  readonly service: Service
  readonly base: string
  /** Sent with each request, such as a token. A request's own headers come on top. */
  readonly headers?: Readonly<Record<string, string>>
  /** What must be the same before and after all of them, read by the public face or from the database. */
  readonly state: () => Promise<unknown>
}

/**
 * Sends each request and expects its refusal: the status, the service's documented shape of an error with the
 * code and the text, and at the end the state of before.
 */
export async function refuseAll(
  t: Test,
  refuser: Refuser,
  refusals: readonly Refusal[],
): Promise<void> {
  const before = await refuser.state()
  for (const [call, status, code, text] of refusals) {
    const { method, path, options } = requestOf(call, refuser.headers)
    const answer = await request(refuser.base + path, { method, ...options, timeoutMs: 30_000 })
    const name = `${typeof call === 'string' ? call : describe(call)}: ${status} ${code ?? ''}`
    const expected = SHAPES[refuser.service](answer, status, code)
    t.same(seen(answer), expected, name.trim())
    if (typeof text === 'string') t.equal(textOf(answer), text, `${name} text`)
    if (text instanceof RegExp) t.match(textOf(answer), text, `${name} text`)
  }
  t.same(await refuser.state(), before, 'nothing has changed')
}

function requestOf(
  call: RefusedCall,
  common: Refuser['headers'],
): { method: string; path: string; options: RequestOptions } {
  const { call: line, body, headers = {} } = typeof call === 'string' ? { call } : call
  const [method = '', path = ''] = line.split(/ (.*)/s)
  const raw = typeof body === 'string' || body instanceof Uint8Array
  return {
    method,
    path,
    options: {
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...common,
        ...headers,
      },
      ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }),
    },
  }
}

function describe({ call, body, headers }: Exclude<RefusedCall, string>): string {
  return `${call} ${JSON.stringify(body ?? headers ?? '').slice(0, 60)}`
}

/** What is compared of an answer: the status, the headers that each has, the body's members. */
type Seen = {
  readonly status: number
  readonly type: string | undefined
  readonly nosniff: string | undefined
  readonly identified: boolean
  readonly members: Readonly<Record<string, unknown>>
}

function seen(answer: Response): Seen {
  return {
    status: answer.status,
    type: answer.headers['content-type'],
    nosniff: String(answer.headers['x-content-type-options']),
    identified: answer.headers['x-request-id'] !== undefined,
    members: { ...membersOf(answer), ...hideText(answer) },
  }
}

/** Texts for people are compared by themselves: here only that there is one. */
function hideText(answer: Response): Readonly<Record<string, unknown>> {
  const members = membersOf(answer)
  return Object.fromEntries(
    ['error', 'title', 'detail', 'instance']
      .filter((name) => typeof members[name] === 'string' && members[name] !== '')
      .map((name) => [name, 'a text']),
  )
}

function membersOf(answer: Response): Readonly<Record<string, unknown>> {
  try {
    return answer.json<Record<string, unknown>>()
  } catch {
    return { text: answer.text.slice(0, 200) }
  }
}

function textOf(answer: Response): string {
  const { error, detail } = membersOf(answer)
  return String(error ?? detail)
}

const COMMON = { nosniff: 'nosniff', identified: true }

/** The shape of each service's errors (the contracts' chapters about errors). */
const SHAPES: Readonly<
  Record<Service, (answer: Response, status: number, code: string | undefined) => Seen>
> = {
  hooks: (_, status) => {
    const texts = { title: 'a text', detail: 'a text', instance: 'a text' }
    const members = { type: 'about:blank', status, ...texts }
    return { ...COMMON, status, type: 'application/problem+json', members }
  },
  links: (_, status, code) => {
    const members = { error: 'a text', code }
    return { ...COMMON, status, type: 'application/json', members }
  },
  ops: (_, status) => {
    const members = { error: 'a text' }
    return { ...COMMON, status, type: 'application/json', members }
  },
}
