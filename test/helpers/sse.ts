import { request } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { Owner } from './owner.ts'
import { transcript } from './secrets.ts'

/** One message of a stream. `event` is `message` when the server names none. */
export type StreamEvent = { event: string; id: string | undefined; data: string }

/** How to open a stream; `lastEventId` becomes the `Last-Event-ID` header. */
export type StreamOptions = {
  headers?: Readonly<Record<string, string>>
  lastEventId?: string
  /** Limit for the response's head, 10 s when absent. */
  timeoutMs?: number
}

/** An open stream. It does not reconnect: a test opens the next one with `lastEventId`. */
export type EventStream = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** All messages so far. */
  readonly events: readonly StreamEvent[]
  /** All comments so far (keep-alives). */
  readonly comments: readonly string[]
  /** The reconnection time that the server set last, in milliseconds. */
  readonly retry: number | undefined
  readonly lastEventId: string | undefined
  /** The first message that passes, received or to come. Rejects when the stream ends before. */
  until(
    passes: (event: StreamEvent) => boolean,
    what?: string,
    timeoutMs?: number,
  ): Promise<StreamEvent>
  /** Stops reading, so that the server's buffers fill. */
  pause(): void
  resume(): void
  close(): void
  /** Settles when the stream is over, by either side; never rejects. */
  readonly closed: Promise<void>
}

type Waiter = {
  passes: (event: StreamEvent) => boolean
  found: (event: StreamEvent) => void
  lost: () => void
}

/** Opens a server-sent event stream and collects it; it is closed with the test. */
export async function openStream(
  t: Owner,
  url: string,
  options: StreamOptions = {},
): Promise<EventStream> {
  const incoming = await open(url, options)
  const events: StreamEvent[] = []
  const comments: string[] = []
  const waiters = new Set<Waiter>()
  const over = Promise.withResolvers<void>()
  let [retry, lastEventId, ended]: [number | undefined, string | undefined, boolean] = [
    undefined,
    options.lastEventId,
    false,
  ]
  let line = ''
  // The parser tells of no id that comes without data.
  function noteIds(text: string): void {
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const one of lines) if (one.startsWith('id: ')) lastEventId = one.slice(4)
  }
  const parser = createParser({
    onEvent({ event = 'message', id, data }) {
      const message = { event, id, data }
      events.push(message)
      for (const waiter of waiters) if (waiter.passes(message)) waiter.found(message)
    },
    onRetry: (milliseconds) => (retry = milliseconds),
    onComment: (comment) => comments.push(comment),
  })
  incoming.setEncoding('utf8').on('data', (text: string) => {
    transcript('sse', text)
    parser.feed(text)
    noteIds(text)
  })
  // A cut connection is an end like any other here.
  incoming.on('error', () => undefined)
  incoming.on('close', () => {
    ended = true
    for (const waiter of waiters) waiter.lost()
    over.resolve()
  })
  const close = (): void => void incoming.destroy()
  t.teardown(close)

  function until(
    passes: (event: StreamEvent) => boolean,
    what = 'a message',
    timeoutMs = 10_000,
  ): Promise<StreamEvent> {
    const known = events.find(passes)
    if (known !== undefined) return Promise.resolve(known)
    const waited = Promise.withResolvers<StreamEvent>()
    const say = (why: string): Error =>
      new Error(`waited for ${what}: ${why} after ${events.length} messages`)
    if (ended) return Promise.reject(say('the stream had ended'))
    const lost = (): void => waited.reject(say('the stream ended'))
    const waiter: Waiter = { passes, found: waited.resolve, lost }
    waiters.add(waiter)
    const timer = setTimeout(() => waited.reject(say(`nothing in ${timeoutMs} ms`)), timeoutMs)
    return waited.promise.finally(() => {
      clearTimeout(timer)
      waiters.delete(waiter)
    })
  }

  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    events,
    comments,
    get retry() {
      return retry
    },
    get lastEventId() {
      return lastEventId
    },
    until,
    pause: () => void incoming.pause(),
    resume: () => void incoming.resume(),
    close,
    closed: over.promise,
  }
}

function open(url: string, options: StreamOptions): Promise<IncomingMessage> {
  const { headers = {}, lastEventId, timeoutMs = 10_000 } = options
  const resume = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }
  const opened = Promise.withResolvers<IncomingMessage>()
  const all = { Accept: 'text/event-stream', ...resume, ...headers }
  const outgoing = request(url, { agent: false, headers: all }, opened.resolve)
  const timer = setTimeout(() => outgoing.destroy(new Error('no answer')), timeoutMs)
  outgoing.on('error', opened.reject)
  outgoing.end()
  return opened.promise.finally(() => clearTimeout(timer))
}
