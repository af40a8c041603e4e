import type { Test } from 'tap'
import { request, type RequestOptions, type Response } from './http.ts'
import type { Service } from './server.ts'

/** What is refused how: the status, the code (where the API has codes), and the text or a part of it. */
type Expected =
  | readonly [status: number, part: RegExp]
  | readonly [status: number, code?: string | undefined, text?: string | RegExp]

/** One refused request: what is sent, and how it is refused. */
export type Refusal = readonly [call: RefusedCall, ...expected: Expected]

/** `METHOD /path` alone, or with what else is sent. A body that is no text and no bytes is sent as JSON. */
export type RefusedCall = string | Sent
type Sent = { call: string; body?: unknown; headers?: Headers }
type Headers = RequestOptions['headers']

/** Where the requests go. */
type Refuser = {
  service: Service
  base: string
  /** Sent with each request, such as a token. A request's own headers come on top. */
  headers?: Record<string, string>
  /** What must be the same before and after all of them, read by the public face or from the database. */
  state: () => Promise<unknown>
}

/** Sends each request and expects its refusal, and at the end the state of before. */
export async function refuseAll(t: Test, refuser: Refuser, refusals: readonly Refusal[]) {
  const before = await refuser.state()
  const type = refuser.service === 'hooks' ? PROBLEM : 'application/json'
  for (const [call, ...expected] of refusals) {
    const { call: line, body, headers }: Sent = typeof call === 'string' ? { call } : call
    const [method = '', path = ''] = line.split(/ (.*)/s)
    const raw = typeof body === 'string' || body instanceof Uint8Array
    const json = body !== undefined && { 'content-type': 'application/json' }
    const answer = await request(refuser.base + path, {
      method,
      headers: { ...json, ...refuser.headers, ...headers },
      ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }),
      timeoutMs: 30_000,
    })
    const name = `${line} ${JSON.stringify(body ?? headers ?? '').slice(0, 60)}`
    t.equal(answer.headers['content-type'], type, `${name}: the type`)
    refuses(t, answer, expected, name)
  }
  t.same(await refuser.state(), before, 'nothing has changed')
}

/** The answer is this refusal, in the shape of its service: a problem, `{error, code}` or `{error}`. */
export function refuses(
  t: Test,
  answer: Pick<Response, 'status' | 'headers' | 'text'>,
  [status, second, third = /\S/]: Expected,
  what = '',
) {
  const [code, text] = second instanceof RegExp ? [undefined, second] : [second, third]
  const members = membersOf(answer.text)
  const isProblem = answer.headers['content-type'] === PROBLEM
  const names = isProblem ? PROBLEM_MEMBERS : ['error', ...(code === undefined ? [] : ['code'])]
  const name = `${what} ${status} ${code ?? ''}`.trim()
  const { 'x-content-type-options': nosniff, 'x-request-id': id } = answer.headers
  t.match({ nosniff, id }, { nosniff: 'nosniff', id: /^\S+$/ }, `${name} headers`)
  if (isProblem) {
    t.match(members, { type: 'about:blank', status, title: /\S/, instance: /\S/ }, name)
  }
  t.same(
    [answer.status, members['code'], Object.keys(members).toSorted()],
    [status, code, names.toSorted()],
    name,
  )
  const said = String(members['error'] ?? members['detail'])
  if (typeof text === 'string') t.equal(said, text, `${name} text`)
  else t.match(said, text, `${name} text`)
}

const PROBLEM = 'application/problem+json'
const PROBLEM_MEMBERS = ['type', 'title', 'status', 'detail', 'instance']

function membersOf(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text)
  } catch {
    return { text: text.slice(0, 200) }
  }
}

/** A call that must have this status; gives the answer. */
export async function expectStatus<A extends { status: number; text: string }>(
  status: number,
  call: Promise<A>,
  what = '',
) {
  const answer = await call
  if (answer.status === status) return answer
  const said = answer.text.slice(0, 300)
  throw new Error(`${what} answered ${answer.status}, expected ${status}: ${said}`)
}
