import { Worker } from 'node:worker_threads'
import { until } from '../../test/helpers/until.ts'
import type { Owner } from './measure.ts'
import type { StreamNews, StreamOrder } from './stream-worker.ts'

/** Clients of one event stream, in a thread of their own. */
export interface StreamClients {
  /** Notes that the next event is sent now; resolves when every client has as many events as were sent by now. */
  send(): Promise<void>
  /** Milliseconds from sending to receipt below which this part of all frames since the last call lie. */
  delay(part: number): number
}

/** Most events that are sent to one set of clients. */
const MOST_EVENTS = 100_000
/** 20 s in tenths of a millisecond. */
const TENTHS = 200_000

/** Opens this many streams; resolves when each has got its first bytes. Events are counted by `mark`. */
export async function openStreamClients(
  owner: Owner,
  target: Pick<StreamOrder, 'port' | 'path' | 'clients' | 'mark'>,
): Promise<StreamClients> {
  const sentAt = new Float64Array(new SharedArrayBuffer(8 * MOST_EVENTS))
  const delays = new Int32Array(new SharedArrayBuffer(4 * TENTHS))
  const worker = new Worker(new URL('./stream-worker.ts', import.meta.url), {
    workerData: { ...target, sentAt, delays } satisfies StreamOrder,
  })
  owner.teardown(() => worker.terminate())
  let connected = false
  let failure: unknown
  const arrivals: PromiseWithResolvers<void>[] = []
  worker.on('message', (news: StreamNews) => {
    if ('connected' in news) connected = true
    else arrivals[news.complete]?.resolve()
  })
  worker.on('error', (error) => {
    failure = error
    for (const arrival of arrivals) arrival.reject(error)
  })
  await until(() => connected || failure !== undefined, 'all clients to be connected', 60_000)
  if (failure !== undefined) throw failure

  return {
    send() {
      sentAt[arrivals.length] = Number(process.hrtime.bigint()) / 1e6
      const arrival = Promise.withResolvers<void>()
      arrivals.push(arrival)
      return arrival.promise
    },
    delay(part) {
      const wanted = delays.reduce((sum, count) => sum + count, 0) * part
      let seen = 0
      const tenths = delays.findIndex((count) => (seen += count) >= wanted)
      delays.fill(0)
      return tenths / 10
    },
  }
}
