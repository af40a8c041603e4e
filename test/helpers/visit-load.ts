import { Agent, get } from 'node:http'
import { BROWSER } from './visits.ts'

/** Visits, on connections that are kept unless told otherwise, until `stop` or, for each client, until the first failure. */
export type VisitLoad = {
  /** 302s received, by path. */
  readonly redirected: ReadonlyMap<string, number>
  readonly total: number
  /** Other answers, by status. */
  readonly others: readonly number[]
  /** Visits that got no answer: each ended its client. */
  readonly unanswered: number
  /** Resolves when every client has ended. */
  readonly ended: Promise<void>
  stop(): Promise<void>
}

/** Starts clients that visit the paths in turn, one visit after the other each. */
export function startVisits(
  base: string,
  paths: readonly string[],
  clients = 16,
  keepsConnections = true,
): VisitLoad {
  const redirected = new Map<string, number>()
  const others: number[] = []
  let [total, unanswered, stopped] = [0, 0, false]

  async function client(at: number): Promise<void> {
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
    }
    agent.destroy()
  }

  const ended = Promise.all(Array.from({ length: clients }, (_, at) => client(at))).then(() => {})
  return {
    redirected,
    others,
    ended,
    get total() {
      return total
    },
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
