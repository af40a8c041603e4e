import { parseJson, stringOf } from '../../../kernel/json.ts'
import { backoffMs, pause } from '../../../kernel/time.ts'
import type { Channel, ChannelEnd } from '../../../kernel/http/websocket.ts'
import {
  NEXT,
  readServerMessage,
  type ForwardedEvent,
  type ServerMessage,
  forwardUrl,
  type ForwardRequest,
  type ForwardResult,
} from './protocol.ts'
import type { OutboundRequest, OutboundResult } from '../../../kernel/net/outbound.ts'
import { isSuccess, targetAnswer, type TargetAnswer } from '../outgoing.ts'

/** What `gatehouse forward` works with. */
export interface ForwardOptions {
  /** Address of the hooks service, http: or https:; it may have a path. */
  readonly from: URL
  readonly request: ForwardRequest
  readonly deliver: Deliver
  readonly connect: (url: URL) => Channel
  readonly random: (size: number) => Buffer
  /** Aborted when forwarding must stop. */
  readonly stop: AbortSignal
  readonly report: ForwardReport
}

/** Gets the news while it runs. */
export interface ForwardReport {
  /** After each attempt. */
  attempted(delivered: Delivered): void
  connected(ready: Extract<ServerMessage, { type: 'ready' }>): void
  /** One line about a problem that does not end it. */
  problem(line: string): void
}

/** Why a connection ended; after a `final` end there is no further connection. */
interface End {
  readonly reason: string
  readonly final: boolean
  readonly wasReady: boolean
}

/**
 * Forwards events until it is stopped, over as many connections as that takes. Returns undefined
 * when it was stopped, else the reason why it can't continue.
 */
export async function forward(options: ForwardOptions): Promise<string | undefined> {
  const { request, random, stop, report } = options
  let failures = 0
  let lastReason: string | undefined
  while (!stop.aborted) {
    const end = await followOnce(options)
    if (stop.aborted) break
    if (end.final) return end.reason
    failures = end.wasReady ? 1 : failures + 1
    if (end.wasReady || end.reason !== lastReason) {
      report.problem(`no connection (${end.reason}); "${request.name}" tries again`)
    }
    lastReason = end.reason
    await pause(backoffMs(failures, random), stop)
  }
  return undefined
}

/** Serves one connection until it ends; a delivery that runs at the end is finished. */
async function followOnce(options: ForwardOptions): Promise<End> {
  const { from, request, deliver, connect, stop, report } = options
  const channel = connect(forwardUrl(from, request))
  let announced: ForwardedEvent | undefined
  let wasReady = false
  let givenUp: string | undefined
  let delivering: Promise<void> | undefined

  function onMessage(message: string | Buffer): void {
    if (typeof message !== 'string') {
      if (announced === undefined) return breach()
      delivering = handOver(announced, message)
      announced = undefined
      return
    }
    const read = readServerMessage(message)
    if (read === undefined || announced !== undefined || delivering !== undefined) return breach()
    if (read.type === 'gap') {
      report.problem(`retention removed events up to ${read.removed_through} before they came here`)
    } else if (read.type === 'ready') {
      wasReady = true
      report.connected(read)
      channel.send(NEXT)
    } else if (read.headers === null) delivering = handOver(read, undefined)
    else announced = read
  }

  function breach(): void {
    channel.close(1008, 'The messages do not follow the relay protocol.')
  }

  async function handOver(event: ForwardedEvent, body: Buffer | undefined): Promise<void> {
    const delivered = await deliver(event, body)
    report.attempted(delivered)
    channel.send(JSON.stringify(delivered.result))
    if (delivered.outcome === 'given-up') {
      givenUp = `gave event ${event.id} up after ${delivered.attempts} attempts`
      return channel.close(1000, 'given up')
    }
    if (delivered.waitMs > 0) await pause(delivered.waitMs, stop)
    delivering = undefined
    if (stop.aborted) channel.close(1000, 'stopped')
    else channel.send(NEXT)
  }

  function stopped(): void {
    if (delivering === undefined) channel.close(1000, 'stopped')
  }

  channel.onMessage(onMessage)
  stop.addEventListener('abort', stopped)
  const end = await channel.ended
  stop.removeEventListener('abort', stopped)
  await delivering
  if (givenUp !== undefined) return { reason: givenUp, final: true, wasReady }
  return { ...reasonOf(end), wasReady }
}

/** Why a connection ended, and whether another attempt is useless. */
function reasonOf(end: ChannelEnd): Omit<End, 'wasReady'> {
  if (end.kind === 'lost') return { reason: end.reason, final: false }
  if (end.kind === 'closed') {
    const reason = plain(end.reason === '' ? `closed with ${end.code}` : end.reason)
    return { reason, final: end.code === 4409 || end.code === 1008 }
  }
  const { status } = end
  const reason = `the server answers ${status}${detailOf(end.body)}`
  // 408, 425, 429 and everything from 500 on may pass: the server or its proxy is busy or broken.
  return { reason, final: status < 500 && ![408, 425, 429].includes(status) }
}

/** The detail of a problem+json body. The body may be cut, or be a proxy's. */
function detailOf(body: string): string {
  const quoted = /"detail":("(?:[^"\\]|\\.)*")/.exec(body)?.[1]
  const detail = stringOf(parseJson(quoted ?? ''))
  return detail === undefined ? '' : `: ${plain(detail)}`
}

/** The other side's text as one line for a terminal. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
}

/** How events are delivered to a target. */
export interface DeliveryOptions {
  readonly target: URL
  /** How often a failed delivery is repeated. */
  readonly retries: number
  /** Whether the next event follows when the retries are used up; otherwise forwarding ends. */
  readonly skipFailed: boolean
  readonly post: (request: OutboundRequest) => Promise<OutboundResult>
  readonly random: (size: number) => Buffer
  /** Aborted to end a running delivery. */
  readonly cut: AbortSignal
}

/** The state of an event after an attempt. */
export interface Delivered {
  readonly event: ForwardedEvent
  readonly result: ForwardResult
  /** Attempts so far, this one included. */
  readonly attempts: number
  /**
   * `left`: the next event follows. `again`: another attempt after `waitMs`. `repeat`: it was
   * settled before and was not sent again. `given-up`: forwarding ends.
   */
  readonly outcome: 'delivered' | 'repeat' | 'left' | 'again' | 'given-up'
  readonly waitMs: number
}

/** Makes one attempt; `body` is undefined for an event that the server can't send. */
export type Deliver = (event: ForwardedEvent, body: Buffer | undefined) => Promise<Delivered>

const TIMEOUT_MS = 30_000

/**
 * Bytes of an answer that are read: a target that still writes must not see a broken connection.
 */
const ANSWER_BYTES = 64 * 1024

/** Header with the event's id: the target may get an event twice and can tell by it. */
const MARKER = 'x-gatehouse-event'

/**
 * Delivers events to the target one by one. It outlives connections: if the server did not get a
 * result, it sends the event again, and gets the same result without a second delivery.
 */
export function createDelivery(options: DeliveryOptions): Deliver {
  const { target, retries, skipFailed, post, random, cut } = options
  let settled: ForwardResult | undefined
  let current: number | undefined
  let failures = 0

  async function attempt(event: ForwardedEvent, body: Buffer): Promise<TargetAnswer> {
    const result = await post({
      url: target,
      headers: { ...event.headers, [MARKER]: String(event.id) },
      body,
      timeoutMs: TIMEOUT_MS,
      // The user of the command chose the target.
      trusted: true,
      answerBytes: ANSWER_BYTES,
      signal: cut,
    })
    const answer = targetAnswer(result)
    return { ...answer, detail: answer.detail?.slice(0, 1_000) ?? null }
  }

  return async function deliver(event, body) {
    const { id } = event
    if (settled?.id === id) {
      return { event, result: settled, attempts: failures, outcome: 'repeat', waitMs: 0 }
    }
    if (current !== id) failures = 0
    current = id
    const answer =
      body === undefined
        ? { status: null, ms: 0, detail: event.refused }
        : await attempt(event, body)
    const good = isSuccess(answer.status)
    const attempts = failures + 1
    if (!good) failures++
    const over = failures > retries
    const done = good || (over && skipFailed)
    const result: ForwardResult = { type: 'result', id, ...answer, done }
    if (done) settled = result
    const outcome = good ? 'delivered' : done ? 'left' : over ? 'given-up' : 'again'
    const waitMs = outcome === 'again' ? backoffMs(failures, random) : 0
    return { event, result, attempts, outcome, waitMs }
  }
}
