import { hostname } from 'node:os'
import { parseArgs } from 'node:util'
import { redactUrlTokens } from '../services/hooks/redact.ts'
import { readRelayRequest, type RelayRequest } from '../services/hooks/relay-request.ts'
import { parseTarget, TARGET_FORM } from '../services/hooks/replay-target.ts'
import { UsageError } from './command.ts'

export const FORWARD_USAGE =
  'gatehouse forward TARGET [--from URL] [--provider P] [--event-type T] [--name N] [--since ID]\n' +
  '                    [--retries N] [--skip-failed] [--json]'

/** How often a failed event is tried again before `--skip-failed` leaves it out. */
const RETRIES_BEFORE_SKIP = 3

/** What `gatehouse forward` is asked to do. */
export interface ForwardArguments {
  readonly from: URL
  readonly target: URL
  readonly request: RelayRequest
  readonly retries: number
  readonly skipFailed: boolean
  readonly json: boolean
}

const FLAGS = {
  from: { type: 'string', default: 'http://127.0.0.1:8080' },
  provider: { type: 'string' },
  'event-type': { type: 'string' },
  name: { type: 'string' },
  since: { type: 'string' },
  retries: { type: 'string' },
  'skip-failed': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseForward(args: readonly string[]): ForwardArguments {
  let parsed
  try {
    parsed = parseArgs({ args: [...args], options: FLAGS, allowPositionals: true })
  } catch (error) {
    // TypeError: an unknown flag, or one without its value.
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
  const [text, ...rest] = parsed.positionals
  const { values } = parsed
  if (text === undefined) throw new UsageError('Missing TARGET')
  if (rest.length > 0) throw new UsageError('Too many arguments')
  const target = parseTarget(text)
  if (target === undefined) throw new UsageError(`TARGET must be ${TARGET_FORM}`)
  const from = URL.canParse(values.from) ? new URL(values.from) : undefined
  if (from === undefined || !/^https?:$/.test(from.protocol)) {
    throw new UsageError('--from must be an http:// or https:// URL')
  }
  const skipFailed = values['skip-failed']
  const usual = skipFailed ? RETRIES_BEFORE_SKIP : Number.POSITIVE_INFINITY
  return {
    from,
    target,
    request: readRequest(target, values),
    retries: values.retries === undefined ? usual : readRetries(values.retries),
    skipFailed,
    json: values.json,
  }
}

/** The request, checked as the server will check it. */
function readRequest(
  target: URL,
  values: { readonly [flag in 'provider' | 'event-type' | 'name' | 'since']?: string },
): RelayRequest {
  const { provider, 'event-type': type, name, since } = values
  const asked = {
    name: name ?? usualName(target, [provider, type]),
    target: redactUrlTokens(target.href),
    provider,
    event_type: type,
    since,
  }
  const given = Object.entries(asked).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value]],
  )
  const request = readRelayRequest(new URLSearchParams(given))
  if (typeof request === 'string') throw new UsageError(`--${request.replace(/\.$/, '')}`)
  return request
}

/** This machine and where the events go; other events to the same place are another forwarder. */
function usualName(target: URL, wanted: readonly (string | undefined)[]): string {
  const place = `${target.host}${target.pathname}`
  const parts = [hostname(), place, ...wanted].filter((part) => part !== undefined)
  return parts.join(' ').slice(0, 200)
}

function readRetries(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError('--retries must be a whole number')
  return Number(text)
}
