import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { apiOf, type ApiResponse } from '../helpers/api.ts'
import type { Row } from '../helpers/backends.ts'
import {
  brokenOf,
  lostOf,
  startLoad,
  storedEvents,
  type Load,
  type Sender,
} from '../helpers/deliveries.ts'
import type { Owner } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import type { TestServer } from '../helpers/server.ts'

/** Work for all three services that goes on until it is stopped, whatever is answered. */
export type ServiceLoad = {
  deliveries: Load
  /** Slugs of links, observations of memories and ids of sessions that were acknowledged. */
  acked: {
    links: readonly string[]
    memories: readonly string[]
    sessions: readonly number[]
  }
  /** All other answers of links and ops. */
  refused: readonly { what: string; answer: ApiResponse<unknown> }[]
  /** Calls that got no answer. */
  unanswered: readonly string[]
  stop(): Promise<void>
}

/** How: `server` is asked before each call, because a restart changes it; `token` is for links. */
type ServiceLoadOptions = {
  server: () => TestServer
  sender: Sender
  token: string
}

type Call = [service: 'links' | 'ops', path: string, body: object]

let made = 0

/** Starts senders of deliveries, writers of links and memories, and who starts sessions. */
export function startServiceLoad(t: Owner, options: ServiceLoadOptions) {
  const { server, sender, token } = options
  const deliveries = startLoad(t, { base: () => server().hooks, sender, senders: 4 })
  const acked: { links: string[]; memories: string[]; sessions: number[] } = {
    links: [],
    memories: [],
    sessions: [],
  }
  const refused: { what: string; answer: ApiResponse<unknown> }[] = []
  const unanswered: string[] = []
  let stopped = false

  /** Makes one thing after the other, and says what was acknowledged. */
  async function work(next: () => Call, keep: (json: { id: number }) => void) {
    while (!stopped) {
      const [service, path, body] = next()
      const what = `POST ${path}`
      try {
        const api = apiOf(server()[service], service === 'links' ? token : undefined)
        const answer = await api<{ id: number }>('POST', path, body)
        if (answer.status === 201) keep(answer.json)
        else refused.push({ what, answer })
      } catch (error) {
        unanswered.push(`${what}: ${String(error)}`)
      }
      await pause(30)
    }
  }
  async function makeLinks() {
    let slug = ''
    const next = (): Call => {
      slug = `load-${process.pid}-${made++}`
      return ['links', '/links', { slug, url: 'https://load.test/', tags: ['load', 'other'] }]
    }
    await work(next, () => acked.links.push(slug))
  }
  async function makeMemories() {
    let observation = ''
    const next = (): Call => {
      observation = `observation ${process.pid}-${made++}`
      return ['ops', '/memories', { category: 'timing', observation }]
    }
    await work(next, () => acked.memories.push(observation))
  }
  async function startSessions() {
    const next = (): Call => ['ops', '/sessions/trigger', { prompt: 'look' }]
    await work(next, ({ id }) => acked.sessions.push(id))
  }

  const working = Promise.all([makeLinks(), makeLinks(), makeMemories(), startSessions()])
  async function stop() {
    stopped = true
    await Promise.all([deliveries.stop(), working])
  }
  t.teardown(stop)
  return { deliveries, acked, refused, unanswered, stop }
}

/** Looks into the database. */
type Look = (text: string) => Promise<readonly Row[]>

/** All that was acknowledged is there, once and whole; what was not is whole or not there at all. */
export async function assertKept(t: Test, { deliveries, acked }: ServiceLoad, look: Look) {
  const stored = await storedEvents({ query: (_env: Env, text: string) => look(text) }, {})
  t.same(lostOf(deliveries.acked, stored), [], `${deliveries.acked.length} deliveries are there`)
  t.same(brokenOf(deliveries.sent, stored), [], `${stored.size} events are whole`)
  // In one statement: what the server of a killed process was doing goes on, and may be stored in between.
  const doubled = await look(
    'select external_id from hooks.events group by external_id having count(*) > 1',
  )
  t.same(doubled, [], 'no delivery has two events')

  const links = await look(
    `select slug, (select count(*) from links.link_owners o where o.slug = l.slug)::integer as owners,
            (select count(*) from links.link_tags t where t.slug = l.slug)::integer as tags
       from links.links l where slug like 'load-%'`,
  )
  const slugs = new Set(links.map((row) => String(row['slug'])))
  t.same(missing(acked.links, slugs), [], `${acked.links.length} links are there`)
  t.same(
    links.filter((row) => row['owners'] !== 1 || row['tags'] !== 2),
    [],
    `${links.length} links are whole`,
  )

  const memories = await look(
    'select observation, count(*)::integer as n from ops.memories group by observation',
  )
  const observed = new Set(memories.map((row) => String(row['observation'])))
  t.same(missing(acked.memories, observed), [], `${acked.memories.length} memories are there`)
  t.ok(
    memories.every((row) => row['n'] === 1),
    'each once',
  )

  const sessions = await look('select id::integer, status, ended_at from ops.sessions order by id')
  const ids = new Set(sessions.map((row) => Number(row['id'])))
  t.same(missing(acked.sessions, ids), [], `${acked.sessions.length} sessions are there`)
  t.ok(sessions.filter((row) => row['status'] === 'running').length <= 1, 'one runs at most')
}

/** Whoever was not acknowledged was told to come back, and nothing of the inside. */
export function assertRefusals(t: Test, { deliveries, refused, unanswered }: ServiceLoad) {
  const inside = /ECONN|127\.0\.0\.1|postgres|select|insert|statement/i
  for (const { status, type, retryAfter, text } of deliveries.refused) {
    const good = status === 503 && type === 'application/problem+json'
    if (!good || !/^\d+$/.test(retryAfter ?? '') || inside.test(text)) {
      t.fail(`a delivery was answered ${status} ${type} ${retryAfter}: ${text}`)
    }
  }
  for (const { what, answer } of refused) {
    const { status, headers, text } = answer
    // Sessions run one at a time, and whose answer was lost may run.
    if (what.includes('/sessions/') && status === 409) continue
    if (status !== 503 || !/^\d+$/.test(headers['retry-after'] ?? '') || inside.test(text)) {
      t.fail(`${what} was answered ${status} ${headers['retry-after']}: ${text}`)
    }
  }
  t.same([...deliveries.unanswered.map(String), ...unanswered], [], 'everybody had an answer')
}

function missing<T>(promised: readonly T[], there: ReadonlySet<T>): readonly T[] {
  return promised.filter((one) => !there.has(one))
}
