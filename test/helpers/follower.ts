import { setTimeout as pause } from 'node:timers/promises'
import type { Owner } from './owner.ts'
import { openStream } from './sse.ts'
import type { EventStream, StreamEvent } from './sse.ts'

/** A client of an event stream that comes back by id whenever the stream ends, as a browser does. */
export type Follower = {
  /** All messages so far, over all connections. */
  readonly events: readonly StreamEvent[]
  /** Ids of those that have one. */
  readonly ids: readonly number[]
  /** How often it has connected. */
  readonly connections: number
  /** Connections that were refused, or answered with another status than 200. */
  readonly refused: readonly string[]
  stop(): Promise<void>
}

/** Follows a stream from its start until it is stopped, or until a message has come that is its `last`. */
export function follow(
  t: Owner,
  url: string,
  last: (event: StreamEvent) => boolean = () => false,
): Follower {
  const streams: EventStream[] = []
  const refused: string[] = []
  let stopped = false

  async function work(): Promise<void> {
    while (!stopped) {
      try {
        const lastEventId = streams.at(-1)?.lastEventId ?? '0'
        // Long enough for the start of a process: its socket takes connections before it runs.
        const stream = await openStream(t, url, { lastEventId, timeoutMs: 30_000 })
        streams.push(stream)
        if (stream.status !== 200) {
          refused.push(`status ${stream.status}`)
          await pause(20)
        }
        if (stopped) stream.close()
        await stream.closed
        stopped ||= stream.events.some(last)
      } catch (error) {
        refused.push(error instanceof Error ? error.message : String(error))
        await pause(20)
      }
    }
  }

  const working = work()
  async function stop(): Promise<void> {
    stopped = true
    streams.at(-1)?.close()
    await working
  }
  t.teardown(stop)
  const events = (): StreamEvent[] => streams.flatMap((stream) => stream.events)
  return {
    get events() {
      return events()
    },
    get ids() {
      return events().flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
    },
    get connections() {
      return streams.length
    },
    refused,
    stop,
  }
}
