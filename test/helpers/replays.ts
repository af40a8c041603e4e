import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { FORM_TYPE, plain } from './hooks.ts'
import { allIn, request, type RequestOptions } from './http.ts'
import { listen } from './listen.ts'
import type { Owner } from './owner.ts'
import { expectStatus } from './refusals.ts'
import { openStream, type EventStream, type StreamEvent } from './sse.ts'

/** Posts the form of an event's page, as a program does. */
export function replay(
  base: string,
  id: number,
  target?: string,
  headers: NonNullable<RequestOptions['headers']> = {},
) {
  const body = new URLSearchParams(target === undefined ? {} : { target_url: target }).toString()
  const all = { ...FORM_TYPE, ...headers }
  // Longer than the ten seconds that a target has.
  const options = { method: 'POST', headers: all, body, timeoutMs: 20_000 }
  return request(`${base}/log/${id}/replay`, options)
}

/** The attempts in a page or fragment, newest first. */
export function attemptsIn(text: string) {
  const rows = [
    ...text.matchAll(
      /<tr role="row" data-attempt="\d+" data-outcome="(\w+)">(.*?)<\/tr>(\s*<tr role="row" class="answer">.*?<\/tr>)?/gs,
    ),
  ]
  return rows.map(([, outcome = '', row = '', below = '']) => {
    const cells = allIn(row, /<td[^>]*>(.*?)<\/td>/gs)
    const [first = '', , answer = '', kind = ''] = cells
    const target = /<bdi>(.*?)<\/bdi>/s.exec(first)?.[1] ?? ''
    const detail = /class="detail">(.*?)</s.exec(first)?.[1] ?? ''
    return {
      outcome,
      target: target.replaceAll('&amp;', '&'),
      detail,
      answer: answer.trim(),
      kind: kind.trim(),
      body: plain(/<code>(.*?)<\/code>/s.exec(below)?.[1] ?? ''),
    }
  })
}

/** The attempts that an event's page lists, newest first. */
export async function attemptsOf(base: string, id: number) {
  const path = `/log/${id}?tab=deliveries`
  return attemptsIn((await expectStatus(200, request(base + path), path)).text)
}

/** A request as a receiver got it, read whole. */
export type Received = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  rawHeaders: readonly string[]
  body: Buffer
}

/** Answers a request, or leaves it unanswered. */
export type Answer = (
  request: Received,
  response: ServerResponse<IncomingMessage>,
) => void | Promise<void>

/** A stranger's HTTP server on loopback: what it got, and how often it was connected to. */
export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/** Starts a receiver that answers 204 unless `answer` does something else; it ends with the test. */
export async function startReceiver(
  t: Owner,
  answer: Answer = (_, response) => void response.writeHead(204).end(),
) {
  const received: Received[] = []
  let connections = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers, rawHeaders } = request
      const got = { method, path: url, headers, rawHeaders, body: Buffer.concat(chunks) }
      received.push(got)
      void answer(got, response)
    })
  })
  server.on('connection', () => (connections += 1))
  const port = await listen(t, server)
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    received,
    /** Connections accepted so far, also those on which nothing was sent. */
    connections: () => connections,
  }
}

/**
 * Follows a stream from its start until it is stopped, or until a message has come that is its `last`. It comes back
 * by id whenever the stream ends, as a browser does.
 */
export function follow(
  t: Owner,
  url: string,
  last: (event: StreamEvent) => boolean = () => false,
) {
  const streams: EventStream[] = []
  const refused: string[] = []
  let stopped = false

  async function work() {
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
  async function stop() {
    stopped = true
    streams.at(-1)?.close()
    await working
  }
  t.teardown(stop)
  const events = () => streams.flatMap((stream) => stream.events)
  return {
    /** All messages so far, over all connections. */
    get events() {
      return events()
    },
    /** Ids of those that have one. */
    get ids() {
      return events().flatMap(({ id }) => (id === undefined ? [] : [Number(id)]))
    },
    /** How often it has connected. */
    get connections() {
      return streams.length
    },
    /** Connections that were refused, or answered with another status than 200. */
    refused,
    stop,
  }
}
