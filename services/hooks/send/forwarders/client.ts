import { parseJson, stringOf } from '../../../../kernel/json.ts'
import { backoffMs, pause, systemClock } from '../../../../kernel/time.ts'
import { connectChannel, type ChannelEnd } from '../../../../kernel/http/websocket.ts'
import {
  BREACH,
  NEXT,
  FORWARD_PROTOCOL,
  readMessage,
  ServerMessage,
  type ForwardedEvent,
  forwardUrl,
  type ForwardRequest,
} from './protocol.ts'
import { createDelivery, type Deliver, type Delivered, type DeliveryOptions } from './delivery.ts'

/** What `gatehouse forward` works with. */
interface ForwardOptions extends DeliveryOptions {
  /** Address of the hooks service, http: or https:; it may have a path. */
  from: URL
  request: ForwardRequest
  /** Aborted when forwarding must stop. */
  stop: AbortSignal
  report: ForwardReport
}

/** Gets the news while it runs. */
export interface ForwardReport {
  /** After each attempt. */
  attempted(delivered: Delivered): void
  connected(ready: Extract<ServerMessage, { type: 'ready' }>): void
  /** One line about a problem that does not end it. */
  problem(line: string): void
}

/** An event has at most HOOKS_MAX_BODY bytes, which is 100 MiB at most. */
const MAX_MESSAGE = 100 * 1024 * 1024
const CHANNEL = { protocol: FORWARD_PROTOCOL, maxMessage: MAX_MESSAGE, clock: systemClock }

/** Why a connection ended; after a `final` end there is no further connection. */
interface End {
  reason: string
  final: boolean
  wasReady: boolean
}

/**
 * Forwards events until it is stopped, over as many connections as that takes. Returns undefined
 * when it was stopped, else the reason why it can't continue.
 */
export async function forward(options: ForwardOptions): Promise<string | undefined> {
  const { request, random, stop, report } = options
  const deliver = createDelivery(options)
  let failures = 0
  let lastReason: string | undefined
  while (!stop.aborted) {
    const end = await followOnce(options, deliver)
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
async function followOnce(options: ForwardOptions, deliver: Deliver): Promise<End> {
  const { from, request, stop, report } = options
  const channel = connectChannel({ url: forwardUrl(from, request), ...CHANNEL })
  let announced: ForwardedEvent | undefined
  let wasReady = false
  let givenUp: string | undefined
  let delivering: Promise<void> | undefined

  function onMessage(message: string | Buffer): void {
    if (typeof message !== 'string') {
      if (announced === undefined) return channel.close(1008, BREACH)
      delivering = handOver(announced, message)
      announced = undefined
      return
    }
    const read = readMessage(ServerMessage, message)
    const busy = announced !== undefined || delivering !== undefined
    if (read === undefined || busy) return channel.close(1008, BREACH)
    if (read.type === 'gap') {
      const removed = `retention removed events up to ${read.removed_through}`
      report.problem(`${removed} before they came here`)
    } else if (read.type === 'ready') {
      wasReady = true
      report.connected(read)
      channel.send(NEXT)
    } else if (read.headers === null) delivering = handOver(read, undefined)
    else announced = read
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
