import { hash } from 'node:crypto'
import { appendFileSync, readFileSync, readdirSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { runFolder } from '../helpers/program.ts'

/** A call of an API and its answer, both as they went over the wire; bodies are base64. */
export type Exchange = {
  service: string
  method: string
  /** Path and query. */
  target: string
  headers: Record<string, string | readonly string[]>
  body: string
  status: number
  answerHeaders: IncomingHttpHeaders
  answer: string
}

const FILE = /^exchanges-\d+\.ndjson$/

/** Whether calls of a path are compared; the others are for browsers and senders. */
export function isApi(path: string) {
  return /^\/api\/v\d+\//.test(path)
}

/** Origins of servers that this process started, with the service that answers there. */
const services = new Map<string, string>()

/** From now on the calls of the API at this address are kept for the check against its document. */
export function keepExchanges(service: string, address: string) {
  services.set(new URL(address).origin, service)
}

/** Calls and answers that this process has kept, by their hash: who waits asks the same again and again. */
const kept = new Set<string>()

/** Keeps a call of a known API, in a file that the search for secrets passes by: callers send tokens. */
export function recordExchange(url: string, call: Omit<Exchange, 'service' | 'target'>) {
  const { origin, pathname, search } = new URL(url)
  const service = services.get(origin)
  // What a browser asks before a call from another origin is no operation.
  const isPreflight = 'access-control-request-method' in call.headers
  if (service === undefined || !isApi(pathname) || isPreflight) return
  const exchange: Exchange = { service, target: pathname + search, ...call }
  const { method, target, status, answer } = exchange
  const key = hash('sha1', `${service} ${method} ${target} ${status} ${answer}`)
  if (kept.has(key)) return
  kept.add(key)
  const file = join(runFolder(), `exchanges-${process.pid}.ndjson`)
  appendFileSync(file, `${JSON.stringify(exchange)}\n`, { mode: 0o600 })
}

/** What all test files of the run kept, by service. */
export function exchangesOf(folder: string): Record<string, readonly Exchange[]> {
  const files = readdirSync(folder).filter((name) => FILE.test(name))
  const exchanges = files
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
    .map((line): Exchange => JSON.parse(line))
  return Object.groupBy(exchanges, ({ service }) => service) as Record<string, Exchange[]>
}
