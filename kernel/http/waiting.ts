import type { IncomingMessage } from 'node:http'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { createTally } from '../repeat.ts'

/**
 * The levels of waiting requests, by their heads: deliveries, requests that the guard lets through,
 * and all others.
 */
const LEVELS = ['deliveries', 'trusted', 'strangers'] as const

export type RequestLevel = (typeof LEVELS)[number]

/** For the requests of a level. */
const MAX_BYTES = 16 * 1024 * 1024

/** What Node makes of a request, beside the texts of its head: measured. */
const OBJECT_BYTES = 1_700

/** Node reads this much at once: no more of a body has come with its head. */
const READ_BYTES = 64 * 1024

/** The requests of all listeners that were read and not yet begun, by their bytes. */
export type WaitingRequests = ReturnType<typeof createWaitingRequests>

/**
 * Bounds the memory of requests that clients send without waiting for answers. Each level has a
 * bound of its own, so that strangers can't fill that of others.
 */
export function createWaitingRequests(metrics: Metrics, log: Log) {
  const used: Record<RequestLevel, number> = { deliveries: 0, trusted: 0, strangers: 0 }
  metrics.gauge(
    'gatehouse_http_waiting_bytes',
    'Memory of requests that were sent behind others and are not yet begun.',
    () => LEVELS.map((level) => [{ level }, used[level]]),
  )
  const ended = metrics.counter(
    'gatehouse_http_pipelines_ended',
    'Connections ended, because too many requests waited behind others.',
  )
  const tell = createTally(LEVELS, ({ deliveries, trusted, strangers }) => {
    log.warn('too many requests at once', { deliveries, trusted, strangers })
  })

  return {
    /**
     * Counts a request until the returned function is called; undefined when there is no room, and
     * its connection is to be ended.
     */
    take(level: RequestLevel, request: IncomingMessage): (() => void) | undefined {
      const bytes = bytesOf(request)
      if (used[level] + bytes > MAX_BYTES) {
        ended.add({ level })
        tell(level)
        return undefined
      }
      used[level] += bytes
      return () => {
        used[level] -= bytes
      }
    },
  }
}

function bytesOf({ url = '', headers, rawHeaders }: IncomingMessage) {
  let bytes = OBJECT_BYTES + url.length
  for (const text of rawHeaders) bytes += text.length
  const announced = headers['content-length']
  if (announced !== undefined) return bytes + Math.min(Number(announced), READ_BYTES)
  return headers['transfer-encoding'] === undefined ? bytes : bytes + READ_BYTES
}
