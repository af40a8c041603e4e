import { sizeText } from '../html/text.ts'
import { systemClock } from '../kernel/time.ts'
import { post } from '../kernel/net/outbound.ts'
import { connectChannel } from '../kernel/http/websocket.ts'
import { forward, type ForwardReport } from '../services/hooks/relay-client.ts'
import { createDelivery, type Delivered } from '../services/hooks/relay-delivery.ts'
import { RELAY_PROTOCOL } from '../services/hooks/relay-protocol.ts'
import type { RelayRequest } from '../services/hooks/relay-request.ts'
import { DONE, fail, type Output, type Surroundings } from './command.ts'
import { parseForward } from './forward-arguments.ts'

/** What the command needs beside its arguments. */
export interface ForwardTools extends Pick<Surroundings, 'stopSignal'> {
  readonly random: (size: number) => Buffer
}

/** An event has at most HOOKS_MAX_BODY bytes, which is 100 MiB at most. */
const MAX_MESSAGE = 100 * 1024 * 1024

/** The time that a running delivery has to end after the first signal. */
const GRACE_MS = 5_000

/**
 * `gatehouse forward …`: posts each event of a server to a target, in order, until a signal comes.
 * One line an event goes to stdout, everything else to stderr.
 */
export async function runForward(
  args: readonly string[],
  { random, stopSignal }: ForwardTools,
  output: Output,
): Promise<number> {
  const { from, target, request, retries, skipFailed, json } = parseForward(args)
  const [stop, cut] = [new AbortController(), new AbortController()]
  void stopSignal().then(() => {
    stop.abort()
    setTimeout(() => cut.abort(), GRACE_MS).unref()
  })
  const problem = await forward({
    from,
    request,
    deliver: createDelivery({ target, retries, skipFailed, post, random, cut: cut.signal }),
    connect: (url) =>
      connectChannel({
        url,
        protocol: RELAY_PROTOCOL,
        maxMessage: MAX_MESSAGE,
        clock: systemClock,
      }),
    random,
    stop: stop.signal,
    report: reportTo(output, request, json),
  })
  return problem === undefined ? DONE : fail(output, problem)
}

/** Tells what happens: a line an event that is done with on stdout, troubles on stderr. */
function reportTo(output: Output, request: RelayRequest, json: boolean): ForwardReport {
  return {
    connected({ name, position, known, provider_known }) {
      output.err(`connected as "${name}", after event ${position}`)
      if (!provider_known) output.err(`there is no provider "${request.provider}" yet`)
      if (known && request.since !== null) {
        output.err('--since counts for a new name only; give another --name to start there')
      }
    },
    attempted(delivered) {
      const { event, result, outcome, waitMs } = delivered
      if (outcome === 'delivered' || outcome === 'left') {
        output.out(json ? jsonLine(delivered) : line(delivered))
      }
      if (outcome === 'delivered' || outcome === 'repeat') return
      const answer = result.status === null ? '' : `status ${result.status} `
      const what = `event ${event.id}: ${answer}${result.detail ?? ''}`.trimEnd()
      const then = { left: 'left out', again: `again in ${waitMs} ms`, 'given-up': 'given up' }
      output.err(`${what}; ${then[outcome]}`)
    },
    trouble: (text) => output.err(text),
  }
}

function line({ event, result }: Delivered): string {
  const { id, provider, event_type, payload_size } = event
  const parts = [id, provider, event_type ?? '-', sizeText(payload_size), result.status ?? '-']
  return [...parts, `${result.ms} ms`].join('  ')
}

function jsonLine({ event, result, attempts, outcome }: Delivered): string {
  const { id, provider, event_type, received_at, payload_size } = event
  const { status, ms } = result
  const delivered = outcome === 'delivered'
  const told = { id, provider, event_type, received_at, payload_size, status, ms }
  return JSON.stringify({ ...told, attempts, delivered })
}
