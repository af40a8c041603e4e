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

/** The forwarder's side of the relay. */
export interface ForwardOptions {
  /** Address of the hooks service, http: or https:; it may have a path. */
  readonly from: URL
  readonly request: ForwardRequest
  readonly deliver: Deliver
  readonly connect: (url: URL) => Channel
  readonly random: (size: number) => Buffer
  /** Aborted when nothing more shall be forwarded. */
  readonly stop: AbortSignal
  readonly report: ForwardReport
}

/** What is told while it runs. */
export interface ForwardReport {
  /** After each attempt. */
  attempted(delivered: Delivered): void
  connected(ready: Extract<ServerMessage, { type: 'ready' }>): void
  /** One line about something that is not as it should be. */
  trouble(line: string): void
}

/** Why it goes no further; without `final` another connection is made. */
interface End {
  readonly reason: string
  readonly final: boolean
  readonly wasReady: boolean
}

/**
 * Forwards events until it is stopped, over as many connections as that takes: undefined then, else
 * the reason why it can't go on.
 */
export async function forward(options: ForwardOptions): Promise<string | undefined> {
  const { request, random, stop, report } = options
  let failures = 0
  let told: string | undefined
  while (!stop.aborted) {
    const end = await followOnce(options)
    if (stop.aborted) break
    if (end.final) return end.reason
    failures = end.wasReady ? 1 : failures + 1
    if (end.wasReady || end.reason !== told) {
      report.trouble(`no connection (${end.reason}); "${request.name}" tries again`)
    }
    told = end.reason
    await pause(backoffMs(failures, random), stop)
  }
  return undefined
}

/** One connection from its beginning to its end; a delivery that runs at the end is finished. */
async function followOnce(options: ForwardOptions): Promise<End> {
  const { from, request, deliver, connect, stop, report } = options
  const channel = connect(forwardUrl(from, request))
  let announced: ForwardedEvent | undefined
  let wasReady = false
  let givenUp: string | undefined
  let delivering: Promise<void> | undefined

  function heard(message: string | Buffer): void {
    if (typeof message !== 'string') {
      if (announced === undefined) return breach()
      delivering = bring(announced, message)
      announced = undefined
      return
    }
    const said = readServerMessage(message)
    if (said === undefined || announced !== undefined || delivering !== undefined) return breach()
    if (said.type === 'gap') {
      report.trouble(`retention removed events up to ${said.removed_through} before they came here`)
    } else if (said.type === 'ready') {
      wasReady = true
      report.connected(said)
      channel.send(NEXT)
    } else if (said.headers === null) delivering = bring(said, undefined)
    else announced = said
  }

  function breach(): void {
    channel.close(1008, 'The messages do not follow the relay protocol.')
  }

  async function bring(event: ForwardedEvent, body: Buffer | undefined): Promise<void> {
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

  channel.onMessage(heard)
  stop.addEventListener('abort', stopped)
  const end = await channel.ended
  stop.removeEventListener('abort', stopped)
  await delivering
  if (givenUp !== undefined) return { reason: givenUp, final: true, wasReady }
  return { ...judge(end), wasReady }
}

/** Whether another attempt could come to another end. */
function judge(end: ChannelEnd): Omit<End, 'wasReady'> {
  if (end.kind === 'lost') return { reason: end.reason, final: false }
  if (end.kind === 'closed') {
    const reason = plain(end.reason === '' ? `closed with ${end.code}` : end.reason)
    return { reason, final: end.code === 4409 || end.code === 1008 }
  }
  const { status } = end
  const reason = `the server answers ${status}${detailOf(end.body)}`
  // 408, 425, 429: not now. From 500 on: the server, or the proxy in front of it, is not well.
  return { reason, final: status < 500 && ![408, 425, 429].includes(status) }
}

/** What problem+json says, as far as there is such a body; what comes may be cut, or a proxy's. */
function detailOf(body: string): string {
  const detail = /"detail":("(?:[^"\\]|\\.)*")/.exec(body)?.[1]
  try {
    return detail === undefined ? '' : `: ${plain(String(JSON.parse(detail)))}`
  } catch {
    // SyntaxError: it only looks like JSON.
    return ''
  }
}

/** Text of the other side as one line of a terminal. */
function plain(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
}

/** How events are brought to a target. */
export interface DeliveryOptions {
  readonly target: URL
  /** How often a failed event is tried again. */
  readonly retries: number
  /** Whether the next event comes when the retries are used up; else nothing comes any more. */
  readonly skipFailed: boolean
  readonly post: (request: OutboundRequest) => Promise<OutboundResult>
  readonly random: (size: number) => Buffer
  /** Aborted when the target has no more time. */
  readonly cut: AbortSignal
}

/** What is known of an event after an attempt; `left` when it was given up for the next one. */
export interface Delivered {
  readonly event: ForwardedEvent
  readonly result: ForwardResult
  /** Attempts so far, this one included. */
  readonly attempts: number
  /** What happens now; `again` after `waitMs`. `repeat`: it was delivered before, and not sent again. */
  readonly outcome: 'delivered' | 'repeat' | 'left' | 'again' | 'given-up'
  readonly waitMs: number
}

/** Makes one attempt; `body` is undefined for an event that the server can't send on. */
export type Deliver = (event: ForwardedEvent, body: Buffer | undefined) => Promise<Delivered>

const TIMEOUT_MS = 30_000

/** Much of an answer is read, so that a target that still writes it sees no broken connection. */
const ANSWER_BYTES = 64 * 1024

/** Tells the target which event this is: at least once means that one may come twice. */
const MARKER = 'x-gatehouse-event'

/**
 * Brings events to the target one by one. It outlives connections: an event whose result the server
 * did not get is sent by it again, and answered with the same result instead of delivered twice.
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
      // The one who runs the command chose the target.
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
