import { hostname } from 'node:os'
import { redactUrlTokens } from '../services/hooks/redact.ts'
import {
  readRelayRequest,
  RELAY_NAME_LENGTH,
  type RelayRequest,
} from '../services/hooks/relay-request.ts'
import { parseTarget, TARGET_FORM } from '../services/hooks/replay-target.ts'
import { cleanText, sha256Hex } from '../services/hooks/event-fields.ts'
import { readFlags } from './action-arguments.ts'
import { UsageError } from './command.ts'

export const FORWARD_USAGE =
  'gatehouse forward TARGET [--from URL] [--provider P] [--event-type T] [--text T]\n' +
  '                    [--json-member PATH=VALUE] [--name N] [--since ID] [--retries N]\n' +
  '                    [--skip-failed] [--json]'

/** Where a server listens unless it is told otherwise. */
const USUAL_FROM = 'http://127.0.0.1:8080'

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

/** Flags that the server is told of. */
type Asked = 'provider' | 'event-type' | 'text' | 'json-member' | 'name' | 'since'

const FLAGS = {
  from: { type: 'string' },
  provider: { type: 'string' },
  'event-type': { type: 'string' },
  text: { type: 'string' },
  'json-member': { type: 'string' },
  name: { type: 'string' },
  since: { type: 'string' },
  retries: { type: 'string' },
  'skip-failed': { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseForward(args: readonly string[]): ForwardArguments {
  const { positionals, flags } = readFlags(args, FLAGS)
  const [text, ...rest] = positionals
  if (text === undefined) throw new UsageError('Missing TARGET')
  if (rest.length > 0) throw new UsageError('Too many arguments')
  const target = parseTarget(text)
  if (target === undefined) throw new UsageError(`TARGET must be ${TARGET_FORM}`)
  const { from = USUAL_FROM, retries, 'skip-failed': skipFailed = false, json = false } = flags
  const usual = skipFailed ? RETRIES_BEFORE_SKIP : Number.POSITIVE_INFINITY
  return {
    from: readFrom(from),
    target,
    request: readRequest(target, flags),
    retries: retries === undefined ? usual : readRetries(retries),
    skipFailed,
    json,
  }
}

/** The server's address; of a socket only a path that a URL leaves as it is and that `ws` takes. */
function readFrom(text: string): URL {
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

/** The request, checked as the server will check it. */
function readRequest(target: URL, values: { readonly [flag in Asked]?: string }): RelayRequest {
  const { provider, 'event-type': event_type, text, 'json-member': json, name, since } = values
  const asked = {
    name:
      name ?? usualName(target, [provider, event_type, named('text', text), named('json', json)]),
    target: redactUrlTokens(target.href),
    ...{ provider, event_type, text, json, since },
  }
  const given = Object.entries(asked).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value]],
  )
  const request = readRelayRequest(new URLSearchParams(given))
  if (typeof request === 'string') {
    const problem = request.replace(/^json /, 'json-member ').replace(/\.$/, '')
    throw new UsageError(`--${problem}`)
  }
  return request
}

/** This machine and where the events go; other events to the same place are another forwarder. */
function usualName(target: URL, wanted: readonly (string | undefined)[]): string {
  const place = `${target.host}${target.pathname}`
  const parts = [hostname(), place, ...wanted].filter((part) => part !== undefined)
  const name = parts.join(' ')
  const clean = cleanText(name) ?? ''
  if (clean === name && name.length <= RELAY_NAME_LENGTH) return name
  // Two that differ in what had to go are still two.
  const mark = ` ${sha256Hex(name).slice(0, 16)}`
  return clean.slice(0, RELAY_NAME_LENGTH - mark.length).toWellFormed() + mark
}

function named(name: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `${name}=${value}`
}

function readRetries(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError('--retries must be a whole number')
  return Number(text)
}
