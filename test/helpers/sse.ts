import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { Owner } from './owner.ts'
import { transcript } from './secrets.ts'
import { until } from './until.ts'

/** One message of a stream. `event` is `message` when the server names none. */
export type StreamEvent = { event: string; id: string | undefined; data: string }

/** How to open a stream; `lastEventId` becomes the `Last-Event-ID` header. */
export type StreamOptions = {
  headers?: Record<string, string>
  lastEventId?: string
  /** Limit for the response's head, 10 s when absent. */
  timeoutMs?: number
}

/** An open stream. It does not reconnect: a test opens the next one with `lastEventId`. */
export type EventStream = Awaited<ReturnType<typeof openStream>>

/** Opens a server-sent event stream and collects it; it is closed with the test. */
export async function openStream(t: Owner, url: string, options: StreamOptions = {}) {
  const incoming = await open(url, options)
  const events: StreamEvent[] = []
  const comments: string[] = []
  const over = Promise.withResolvers<void>()
  let retry: number | undefined
  let lastEventId = options.lastEventId
  let isOver = false
  let line = ''
  // The parser tells of no id that comes without data.
  function noteIds(text: string) {
    const lines = (line + text).split('\n')
    line = lines.pop() ?? ''
    for (const one of lines) if (one.startsWith('id: ')) lastEventId = one.slice(4)
  }
  const parser = createParser({
    onEvent: ({ event = 'message', id, data }) => events.push({ event, id, data }),
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
    isOver = true
    over.resolve()
  })
  const close = () => void incoming.destroy()
  t.teardown(close)
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    /** All messages so far. */
    events,
    /** All comments so far (keep-alives). */
    comments,
    /** The reconnection time that the server set last, in milliseconds. */
    get retry() {
      return retry
    },
    get lastEventId() {
      return lastEventId
    },
    /** The first message that passes, received or to come. Rejects when the stream ends before. */
    async until(passes: (event: StreamEvent) => boolean, what = 'a message', timeoutMs = 10_000) {
      const look = () => events.find(passes) ?? isOver
      const found = await until(look, what, timeoutMs)
      if (found !== true) return found
      throw new Error(`waited for ${what}: the stream ended after ${events.length} messages`)
    },
    /** Stops reading, so that the server's buffers fill. */
    pause: () => void incoming.pause(),
    resume: () => void incoming.resume(),
    close,
    /** Settles when the stream is over, by either side; never rejects. */
    closed: over.promise,
  }
}

async function open(url: string, options: StreamOptions) {
  const { headers = {}, lastEventId, timeoutMs = 10_000 } = options
  const resume = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }
  const all = { Accept: 'text/event-stream', ...resume, ...headers }
  const outgoing = request(url, { agent: false, headers: all })
  const timer = setTimeout(() => outgoing.destroy(new Error('no answer')), timeoutMs)
  outgoing.end()
  const [incoming]: IncomingMessage[] = await once(outgoing, 'response')
  clearTimeout(timer)
  if (incoming === undefined) throw new Error('no answer')
  return incoming
}
