import type { IncomingMessage } from 'node:http'
import { messageOf } from '../../kernel/log.ts'
import { Fault } from '../../kernel/fault.ts'
import { splitLines } from '../../kernel/lines.ts'
import { backoffMs, pause } from '../../kernel/time.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'
import type { ApiClient } from '../frame/api-client.ts'

export interface FollowOptions {
  client: ApiClient
  /** The filters of the stream. */
  query: URLSearchParams
  /** The id of the last event that is known. */
  after: number
  stop: AbortSignal
  random: RandomBytes
  /** One line about a problem that does not end it. */
  problem: (line: string) => void
}

/** A message of the stream. */
interface Message {
  event: string
  id: string
  data: string
}

/** The longest line; a summary of an event is far below it. */
const MAX_LINE = 1024 * 1024

/**
 * The messages of the live stream (`GET /events`) until `stop`, over as many connections as that
 * takes. Throws when the server can't be reached at first, and when it refuses.
 */
export async function* followEvents(options: FollowOptions): AsyncGenerator<Message> {
  const { client, query, stop, random, problem } = options
  let position = String(options.after)
  let failures = 0
  let connected = false
  while (!stop.aborted) {
    let reason = 'the stream ended'
    try {
      const headers = { 'last-event-id': position }
      const response = await client.open(`/events?${query}`, { headers, signal: stop })
      connected = true
      failures = 0
      for await (const message of messagesIn(response)) {
        if (message.id !== '') position = message.id
        yield message
      }
    } catch (error) {
      if (stop.aborted) return
      if (!connected || isFinal(error)) throw error
      reason = messageOf(error)
    }
    if (stop.aborted) return
    if (failures++ === 0) problem(`no connection (${reason}); it is tried again`)
    await pause(backoffMs(failures, random), stop)
  }
}

/**
 * 408, 425, 429 and everything from 500 on may pass: the server or its proxy is busy or broken.
 */
function isFinal(error: unknown): boolean {
  if (!(error instanceof Fault)) return false
  return error.status < 500 && ![408, 425, 429].includes(error.status)
}

/** The server-sent events of an answer; one without data moves the position alone. */
async function* messagesIn(response: IncomingMessage): AsyncGenerator<Message> {
  let whole: Message[] = []
  let message: Message = { event: 'message', id: '', data: '' }
  const lines = splitLines(MAX_LINE, (line) => {
    const [, name = '', value = ''] = /^([a-z]+): ?(.*)$/.exec(line) ?? []
    if (name === 'event' || name === 'id' || name === 'data') message[name] = value
    if (line !== '') return
    whole.push(message)
    message = { event: 'message', id: '', data: '' }
  })
  for await (const chunk of response as AsyncIterable<Buffer>) {
    lines.push(chunk)
    yield* whole
    whole = []
  }
}
