import type { IncomingMessage, ServerResponse } from 'node:http'
import { signatureHeaders, SECRETS } from './hooks.ts'
import { request } from './http.ts'
import type { Owner } from './owner.ts'
import { startReceiver, type Received } from './replays.ts'
import { secret } from './secrets.ts'

type Reply = ServerResponse<IncomingMessage>

/** An attempt to deliver, as GitHub lists it. Ids have more digits than a number holds. */
type Attempt = {
  id: bigint
  guid: string
  delivered_at: string
  redelivery: boolean
  status: string
  status_code: number
  event: string
  body: string
}

/** A webhook at GitHub. */
type Hook = { id: number; url: string; attempts: Attempt[] }

/** GitHub, for one repository or organization, as its documentation describes the API of webhooks. */
export type GithubApi = {
  url: string
  token: string
  /** The path of its webhooks, such as `/repos/octo/app/hooks`. */
  path: string
  /** Requests for a redelivery: webhook and attempt. */
  asked: readonly string[]
  requests: readonly Received[]
  /** Answers in its place where it gives true. */
  fault: (got: Received, response: Reply) => boolean
  /** The secret by which it signs. */
  secret: string
  addHook(url: string): Hook
  /** Adds an attempt that went like this. */
  addAttempt(hook: Hook, guid: string, code: number, changes?: Partial<Attempt>): void
}

/** More than fit a page, so that lists have several. */
const PAGE = 2
const MINUTE_MS = 60_000

/** Starts an imitated GitHub. What it is asked for it delivers a moment later, signed. */
export async function startGithub(t: Owner, path: string): Promise<GithubApi> {
  const hooks: Hook[] = []
  const asked: string[] = []
  let nextId = 9_007_199_254_740_993n
  let minutes = -1_000

  function respond(got: Received, response: Reply) {
    if (github.fault(got, response)) return
    const url = new URL(got.path, receiver.url)
    if (got.headers.authorization !== `Bearer ${github.token}`) return problem(response, 401)
    // "Requests with no User-Agent header will be rejected."
    if (got.headers['user-agent'] === undefined) return problem(response, 403)
    if (got.method === 'GET' && url.pathname === path) {
      const rows = hooks.map(({ id, url: to }) => ({
        id,
        type: 'Repository',
        config: { url: to },
      }))
      return list(response, url, 'page', rows)
    }
    const rest = url.pathname.startsWith(`${path}/`) ? url.pathname.slice(path.length + 1) : ''
    const [id, , attemptId, action] = rest.split('/')
    const hook = hooks.find((one) => String(one.id) === id)
    if (hook === undefined) return problem(response, 404)
    if (got.method === 'GET') return list(response, url, 'cursor', hook.attempts)
    const attempt = hook.attempts.find((one) => String(one.id) === attemptId)
    if (attempt === undefined || action !== 'attempts') return problem(response, 404)
    asked.push(`${attempt.guid} ${attempt.id}`)
    response.writeHead(202, { 'content-type': 'application/json' }).end('{}')
    void redeliver(hook, attempt)
  }

  /** A page of a list; the next one is named in the header `Link`. */
  function list(response: Reply, url: URL, name: string, rows: readonly object[]) {
    const from = Number(url.searchParams.get(name) ?? '0')
    const shown = rows.slice(from, from + PAGE)
    url.searchParams.set(name, String(from + PAGE))
    // Behind a proxy it may be another host: the token must not go there.
    const next = `<https://elsewhere.example${url.pathname}${url.search}>; rel="next"`
    const link =
      from + PAGE < rows.length ? { link: `${next}, <https://a.example>; rel="last"` } : {}
    response.writeHead(200, { 'content-type': 'application/json', ...link })
    response.end(exactJson(shown))
  }

  async function redeliver(hook: Hook, { guid, event, body }: Attempt) {
    const { status } = await request(hook.url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-GitHub-Event': event,
        'X-GitHub-Delivery': guid,
        ...signatureHeaders('code_host', body, { secret: github.secret, spelling: 'real' }),
      },
      body,
    })
    github.addAttempt(hook, guid, status, { redelivery: true, delivered_at: timeOf(Date.now()) })
  }

  const receiver = await startReceiver(t, respond)
  const github: GithubApi = {
    path,
    asked,
    url: receiver.url,
    requests: receiver.received,
    token: secret('github-token'),
    secret: SECRETS.code_host,
    fault: () => false,
    addHook(url) {
      const hook = { id: hooks.length + 1, url, attempts: [] }
      hooks.push(hook)
      return hook
    },
    addAttempt(hook, guid, code, changes = {}) {
      nextId += 2n
      minutes += 1
      const status = code === 200 ? 'OK' : code === 0 ? 'failed to connect' : `code ${code}`
      const at = timeOf(Date.now() + minutes * MINUTE_MS)
      const attempt = { id: nextId, guid, delivered_at: at, redelivery: false, status }
      const rest = { status_code: code, event: 'push', body: JSON.stringify({ guid }) }
      hook.attempts.unshift({ ...attempt, ...rest, ...changes })
    },
  }
  return github
}

function problem(response: Reply, status: number) {
  response.writeHead(status, { 'content-type': 'application/json' }).end('{"message":"No"}')
}

function timeOf(ms: number) {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

/** JSON with ids as numbers of all their digits. */
function exactJson(rows: readonly object[]) {
  const text = JSON.stringify(rows, (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : value,
  )
  return text.replaceAll(/"(\d+)n"/g, '$1')
}
