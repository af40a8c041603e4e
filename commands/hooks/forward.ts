import { hostname } from 'node:os'
import { basename, resolve } from 'node:path'
import { sizeText } from '../../html/parts.ts'
import { findProgram } from '../../kernel/processes/find-program.ts'
import { validateQuery } from '../../kernel/validate.ts'
import { accepted, duration, integer } from '../../kernel/variables.ts'
import { redactUrlTokens } from '../../services/hooks/redact.ts'
import { forward, type ForwardReport } from '../../services/hooks/send/forwarders/client.ts'
import {
  postTo,
  type Attempt,
  type Delivered,
} from '../../services/hooks/send/forwarders/delivery.ts'
import { execute } from '../../services/hooks/send/forwarders/execute.ts'
import { ForwardRequest, MAX_NAME_LENGTH } from '../../services/hooks/send/forwarders/protocol.ts'
import { parseTarget, TARGET_FORM } from '../../services/hooks/send/replays/outgoing.ts'
import { cleanText, sha256Hex } from '../../services/hooks/receive/deliveries/fields.ts'
import { checkFrom, FROM, serverOf } from '../frame/api-client.ts'
import { command, readFields, text, UsageError, value, type Call } from '../frame/command.ts'
import type { Output } from '../frame/output.ts'

/** How often a failed event is tried again before `--skip-failed` leaves it out. */
const RETRIES_BEFORE_SKIP = 3
/** The time that a running delivery has to end after the first signal. */
const GRACE_MS = 5_000
/** How long a target may take, unless told otherwise. */
const TARGET_TIMEOUT_S = 30
const MAX_TIMEOUT_S = 7 * 86_400

const ARGS = {
  target: { ...text('[TARGET]', `${TARGET_FORM}, to which events are posted`), repeated: true },
} as const

const FLAGS = {
  exec: value(
    'FILE',
    'run this program for each event, in place of a target',
    accepted('a program that can be run: a path, or a name in PATH', readProgram),
  ),
  from: FROM,
  provider: text('NAME', 'only events of this provider'),
  'event-type': text('TYPE', 'only events of exactly this type'),
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
  timeout: value(
    'DURATION',
    `how long an attempt may take: ${TARGET_TIMEOUT_S}s for a target, no limit for a program`,
    duration(1, MAX_TIMEOUT_S, 'from 1s to 7d'),
  ),
  coalesce: { summary: 'only the newest of the events that wait; the older ones are passed over' },
  json: { summary: 'print an object of JSON for each event' },
}

type ForwardCall = Call<typeof ARGS, typeof FLAGS>

/**
 * Delivers each event until a signal comes: a line an event on stdout, the rest on stderr, also
 * what a program writes.
 */
export const commands = [
  command({
    name: 'forward',
    summary: 'post each event to a target or run a program for it, in order, over restarts',
    args: ARGS,
    flags: FLAGS,
    passes: { shown: '-- ARG...', summary: 'the arguments of the program' },
    needs: 'configuration',
    check(call) {
      checkFrom(call)
      readRequest(call)
    },
    async run(call, { config, random, stopSignal, output }) {
      const { from, json, retries, 'skip-failed': skipFailed } = call.flags
      const stop = new AbortController()
      const cut = new AbortController()
      void stopSignal().then(() => {
        stop.abort()
        setTimeout(() => cut.abort(), GRACE_MS).unref()
      })
      const request = readRequest(call)
      const usualRetries = skipFailed ? RETRIES_BEFORE_SKIP : Number.POSITIVE_INFINITY
      const problem = await forward({
        from: serverOf(from, config),
        request,
        attempt: readRecipient(call).attempts(cut.signal, output),
        retries: retries ?? usualRetries,
        skipFailed,
        random,
        stop: stop.signal,
        report: reportTo(output, request, json),
      })
      if (problem !== undefined) throw new Error(problem)
    },
  }),
]

function readProgram(text: string): string | undefined {
  return findProgram(text, process.env['PATH'] ?? '') && text
}

/** Where the events go. */
interface Recipient {
  /** What the server lists of it, without secrets. */
  shown: string
  /** Its part of the default name. */
  place: string
  attempts: (cut: AbortSignal, output: Output) => Attempt
}

function readRecipient(call: ForwardCall): Recipient {
  const { exec } = call.flags
  if (exec !== undefined) return programOf(exec, call)
  const [text, ...more] = call.args.target
  if (text === undefined) {
    throw new UsageError(`Missing TARGET: ${TARGET_FORM}; or give a program by --exec`)
  }
  if (more.length > 0) throw new UsageError('Too many arguments')
  if (call.passed.length > 0) {
    throw new UsageError('Words after -- are arguments of a program: give it by --exec')
  }
  const target = parseTarget(text)
  if (target === undefined) throw new UsageError(`TARGET must be ${TARGET_FORM}`)
  const timeoutMs = (call.flags.timeout ?? TARGET_TIMEOUT_S) * 1_000
  return {
    shown: redactUrlTokens(target.href),
    place: `${target.host}${target.pathname}`,
    attempts: (cut) => postTo({ target, timeoutMs, cut }),
  }
}

function programOf(program: string, { args, flags, passed }: ForwardCall): Recipient {
  if (args.target.length > 0) {
    throw new UsageError('--exec takes no TARGET; arguments of the program come after --')
  }
  const timeoutMs = flags.timeout === undefined ? undefined : flags.timeout * 1_000
  return {
    // Arguments may be secrets.
    shown: `exec:${cleanText(basename(program)) ?? ''}`,
    place: program.includes('/') ? resolve(program) : program,
    attempts(cut, output) {
      const print = (line: string): void => output.err(line.replaceAll('\t', '    '))
      const options = { argv: [program, ...passed], timeoutMs, cut, print }
      return (event, body) => withExitSignal((kill) => execute({ ...options, kill }, event, body))
    },
  }
}

/** Runs work with a signal that is aborted if this process exits meanwhile. */
async function withExitSignal<T>(work: (exit: AbortSignal) => Promise<T>): Promise<T> {
  const exit = new AbortController()
  const abort = (): void => exit.abort()
  process.once('exit', abort)
  try {
    return await work(exit.signal)
  } finally {
    process.off('exit', abort)
  }
}

/** What is asked of the server, checked as the server will check it. */
function readRequest(call: ForwardCall): ForwardRequest {
  const { flags } = call
  const { shown, place } = readRecipient(call)
  const { provider, text, name, since, coalesce } = flags
  const { 'event-type': event_type, 'json-member': json } = flags
  const wanted = [
    provider,
    event_type,
    text === undefined ? undefined : `text=${text}`,
    json === undefined ? undefined : `json=${json}`,
  ]
  const query = new URLSearchParams({
    name: name ?? defaultName(place, wanted),
    target: shown,
    coalesce: String(coalesce),
  })
  const filters = { provider, event_type, text, json, since }
  for (const [key, value] of Object.entries(filters)) {
    if (value !== undefined) query.set(key, value)
  }
  return readFields(() => validateQuery(ForwardRequest, query))
}

/** This machine and where the events go; other events to the same place are another forwarder. */
function defaultName(place: string, wanted: readonly (string | undefined)[]) {
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
      const then = {
        left: 'left out',
        again: `again in ${waitMs} ms`,
        'given-up': 'given up',
      }
      output.err(`${what}; ${then[outcome]}`)
    },
    problem: (text) => output.err(text),
  }
}

function line({ event, result }: Delivered) {
  const { id, provider, event_type, payload_size } = event
  const { status, exit_code } = result
  const parts = [
    id,
    provider,
    event_type ?? '-',
    sizeText(payload_size),
    exit_code === undefined ? (status ?? '-') : `exit ${exit_code}`,
    `${result.ms} ms`,
  ]
  return parts.join('  ')
}

function jsonLine({ event, result, attempts, outcome }: Delivered) {
  const { id, provider, event_type, received_at, payload_size } = event
  const { status, exit_code, ms } = result
  const told = { id, provider, event_type, received_at, payload_size, status, exit_code, ms }
  return JSON.stringify({ ...told, attempts, delivered: outcome === 'delivered' })
}
