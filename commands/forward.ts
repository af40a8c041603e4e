import { hostname } from 'node:os'
import { sizeText } from '../html/parts.ts'
import { Fault } from '../kernel/fault.ts'
import { connectChannel } from '../kernel/http/websocket.ts'
import { post } from '../kernel/net/outbound.ts'
import { accepted, integer } from '../kernel/variables.ts'
import { systemClock } from '../kernel/time.ts'
import { redactUrlTokens } from '../services/hooks/redact.ts'
import {
  forward,
  type ForwardReport,
  createDelivery,
  type Delivered,
} from '../services/hooks/forward/client.ts'
import {
  readForwardRequest,
  MAX_NAME_LENGTH,
  FORWARD_PROTOCOL,
  type ForwardRequest,
} from '../services/hooks/forward/protocol.ts'
import { parseTarget, TARGET_FORM } from '../services/hooks/outgoing.ts'
import { cleanText, sha256Hex } from '../services/hooks/event-fields.ts'
import { command, text, UsageError, value, type Call } from './command.ts'
import type { Output } from './output.ts'

/** Where a server listens unless it is told otherwise. */
const DEFAULT_FROM = 'http://127.0.0.1:8080'
/** How often a failed event is tried again before `--skip-failed` leaves it out. */
const RETRIES_BEFORE_SKIP = 3
/** An event has at most HOOKS_MAX_BODY bytes, which is 100 MiB at most. */
const MAX_MESSAGE = 100 * 1024 * 1024
const CHANNEL = { protocol: FORWARD_PROTOCOL, maxMessage: MAX_MESSAGE, clock: systemClock }
/** The time that a running delivery has to end after the first signal. */
const GRACE_MS = 5_000

const ARGS = {
  target: value('TARGET', TARGET_FORM, accepted(TARGET_FORM, parseTarget)),
}

const FLAGS = {
  from: text('URL', `the server, unix:/path for its socket, ${DEFAULT_FROM} unless given`),
  provider: text('NAME', 'only events of this provider'),
  'event-type': text('TYPE', 'only events of this type'),
  text: text('TEXT', 'only events whose body has this text'),
  'json-member': text('PATH=VALUE', 'only events whose body has this value'),
  name: text('NAME', 'the name under which the server keeps the position'),
  since: text('ID', 'the first event for a new name'),
  retries: value(
    'N',
    'how often a failed event is tried again, without end unless given',
    integer({ min: 0, max: 999_999_999 }),
  ),
  'skip-failed': {
    summary: `leave an event out after its retries, ${RETRIES_BEFORE_SKIP} at first`,
  },
  json: { summary: 'print an object of JSON for each event' },
}

type ForwardCall = Call<typeof ARGS, typeof FLAGS>

/**
 * Posts each event to a target until a signal comes: a line an event on stdout, the rest on stderr.
 */
export const commands = [
  command({
    name: 'forward',
    summary: 'post each event to a target of your own, in order, over restarts',
    args: ARGS,
    flags: FLAGS,
    needs: 'nothing',
    check: (call) => void [readFrom(call.flags.from), readRequest(call)],
    async run(call, { random, stopSignal, output }) {
      const { target } = call.args
      const { from, json, retries, 'skip-failed': skipFailed } = call.flags
      const [stop, cut] = [new AbortController(), new AbortController()]
      void stopSignal().then(() => {
        stop.abort()
        setTimeout(() => cut.abort(), GRACE_MS).unref()
      })
      const request = readRequest(call)
      const usualRetries = skipFailed ? RETRIES_BEFORE_SKIP : Number.POSITIVE_INFINITY
      const problem = await forward({
        from: readFrom(from),
        request,
        deliver: createDelivery({
          ...{ target, skipFailed, post, random },
          retries: retries ?? usualRetries,
          cut: cut.signal,
        }),
        connect: (url) => connectChannel({ url, ...CHANNEL }),
        random,
        stop: stop.signal,
        report: reportTo(output, request, json),
      })
      if (problem !== undefined) throw new Error(problem)
    },
  }),
]

/** The server's address. Of a socket's path only what a URL leaves unchanged and `ws` accepts. */
function readFrom(text = DEFAULT_FROM): URL {
  const from = URL.canParse(text) ? new URL(text) : undefined
  if (from !== undefined && /^https?:$/.test(from.protocol)) return from
  if (from?.protocol !== 'unix:') {
    throw new UsageError('--from must be an http:// or https:// URL, or unix:/path')
  }
  if (!/^unix:\/[^/:]/.test(text) || text.includes(':', 5) || from.pathname !== text.slice(5)) {
    throw new UsageError('--from unix:/path takes no spaces, colons or special characters')
  }
  return from
}

/** What is asked of the server, checked as the server will check it. */
function readRequest({ args: { target }, flags }: ForwardCall): ForwardRequest {
  const { provider, 'event-type': event_type, text, 'json-member': json, name, since } = flags
  const wanted = [
    ...[provider, event_type],
    text === undefined ? undefined : `text=${text}`,
    json === undefined ? undefined : `json=${json}`,
  ]
  const query = new URLSearchParams({
    name: name ?? defaultName(target, wanted),
    target: redactUrlTokens(target.href),
  })
  for (const [key, value] of Object.entries({ provider, event_type, text, json, since })) {
    if (value !== undefined) query.set(key, value)
  }
  try {
    return readForwardRequest(query)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    const problem = error.message.replace(/^json /, 'json-member ').replace(/\.$/, '')
    throw new UsageError(`--${problem}`)
  }
}

/** This machine and where the events go; other events to the same place are another forwarder. */
function defaultName(target: URL, wanted: readonly (string | undefined)[]): string {
  const place = `${target.host}${target.pathname}`
  const parts = [hostname(), place, ...wanted].filter((part) => part !== undefined)
  const name = parts.join(' ')
  const clean = cleanText(name) ?? ''
  if (clean === name && name.length <= MAX_NAME_LENGTH) return name
  // Names that differ only in what was removed or cut stay different.
  const mark = ` ${sha256Hex(name).slice(0, 16)}`
  return clean.slice(0, MAX_NAME_LENGTH - mark.length).toWellFormed() + mark
}

function reportTo(output: Output, request: ForwardRequest, json: boolean): ForwardReport {
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
    problem: (text) => output.err(text),
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
  const told = { id, provider, event_type, received_at, payload_size, status, ms }
  return JSON.stringify({ ...told, attempts, delivered: outcome === 'delivered' })
}
