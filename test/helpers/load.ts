import { Agent, get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Load } from './deliveries.ts'
import { BROWSER } from './links.ts'

/** How many clients, whether they keep their connection, and how long each rests after a visit. */
type VisitOptions = {
  clients?: number
  keepsConnections?: boolean
  restMs?: number
}

/**
 * Starts clients that visit the paths in turn, one visit after the other each, until `stop` or, for each client, until
 * the first failure.
 */
export function startVisits(
  base: string,
  paths: readonly string[],
  { clients = 16, keepsConnections = true, restMs = 0 }: VisitOptions = {},
) {
  const redirected = new Map<string, number>()
  const others: number[] = []
  let [total, unanswered, stopped] = [0, 0, false]

  async function client(at: number) {
    const agent = new Agent({ keepAlive: keepsConnections, maxSockets: 1 })
    for (let n = at; !stopped; n++) {
      const path = paths[n % paths.length] ?? '/'
      const status = await follow(`${base}${path}`, agent)
      if (status === undefined) {
        unanswered++
        break
      }
      if (status !== 302) others.push(status)
      else {
        redirected.set(path, (redirected.get(path) ?? 0) + 1)
        total++
      }
      if (restMs > 0) await pause(restMs)
    }
    agent.destroy()
  }

  const ended = Promise.all(Array.from({ length: clients }, (_, at) => client(at))).then(() => {})
  return {
    /** 302s received, by path. */
    redirected,
    /** Other answers, by status. */
    others,
    /** Resolves when every client has ended. */
    ended,
    get total() {
      return total
    },
    /** Visits that got no answer: each ended its client. */
    get unanswered() {
      return unanswered
    },
    stop() {
      stopped = true
      return ended
    },
  }
}

function follow(url: string, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve) => {
    get(url, { agent, headers: { 'user-agent': BROWSER } }, (response) => {
      response.resume().on('error', () => undefined)
      response.on('close', () => resolve(response.statusCode))
    }).on('error', () => resolve(undefined))
  })
}

type VisitLoad = ReturnType<typeof startVisits>

/** Asserts that every delivery was accepted and every visit led on, whatever happened to the servers. */
export function allServed(t: Test, loads: readonly Load[], visits: readonly VisitLoad[]) {
  for (const { unanswered, refused } of loads) {
    t.same(unanswered, [], 'every delivery is answered')
    t.same(refused, [], 'and accepted')
  }
  for (const { unanswered, others, total } of visits) {
    t.equal(unanswered, 0, 'every visit is answered')
    t.same(others, [], 'and leads on')
    t.ok(total > 0, 'there were visits')
  }
}
