import { redactUrlTokens } from './redact.ts'
import { parseTarget, TARGET_FORM } from './replay-target.ts'
import { cleanText } from './text.ts'

/** What a forwarder asks for when it connects. */
export interface RelayRequest {
  /** Under this name its position is kept. */
  readonly name: string
  /** Where it sends the events, without tokens: for the list of attempts. */
  readonly target: string
  readonly provider: string | null
  readonly event_type: string | null
  /** The first event that is wanted, by a name that is new; null for those from now on. */
  readonly since: number | null
}

const LONGEST_NAME = 200

/** Reads the query of `/relay`; a line that says what is wrong with it. */
export function readRelayRequest(query: URLSearchParams): RelayRequest | string {
  const name = query.get('name') ?? ''
  if (cleanText(name) !== name || name.length > LONGEST_NAME) {
    return `name must have 1 to ${LONGEST_NAME} characters, and no control characters.`
  }
  const target = parseTarget(query.get('target') ?? '')
  if (target === undefined) return `target must be ${TARGET_FORM}.`
  const since = query.get('since')
  if (since !== null && !/^\d{1,15}$/.test(since)) return 'since must be the id of an event.'
  return {
    name,
    target: redactUrlTokens(target.href),
    provider: query.get('provider') || null,
    event_type: query.get('event_type') || null,
    since: since === null ? null : Number(since),
  }
}

/** Where a forwarder connects: the relay of the server at `from`, with its request as the query. */
export function relayUrl(from: URL, request: RelayRequest): URL {
  const url = new URL(from)
  url.protocol = from.protocol === 'https:' ? 'wss:' : 'ws:'
  url.pathname = `${from.pathname.replace(/\/+$/, '')}/relay`
  url.search = ''
  url.hash = ''
  for (const [name, value] of Object.entries(request)) {
    if (value !== null) url.searchParams.set(name, String(value))
  }
  return url
}
