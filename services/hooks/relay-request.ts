import { memberText, readWanted, type Wanted } from './log-filter.ts'
import { redactUrlTokens } from './redact.ts'
import { parseTarget, TARGET_FORM } from './replay-target.ts'
import { cleanText } from './event-fields.ts'

/** What a forwarder asks for when it connects. */
export interface RelayRequest extends Wanted {
  /** Under this name its position is kept. */
  readonly name: string
  /** Where it sends the events, without tokens: for the list of attempts. */
  readonly target: string
  /** The first event that is wanted, by a name that is new; null for those from now on. */
  readonly since: number | null
}

/** The most characters of a name. */
export const RELAY_NAME_LENGTH = 200

/** Reads the query of `/relay`; a line that says what is wrong with it. */
export function readRelayRequest(query: URLSearchParams): RelayRequest | string {
  const name = query.get('name') ?? ''
  if (cleanText(name) !== name || name.length > RELAY_NAME_LENGTH) {
    return `name must have 1 to ${RELAY_NAME_LENGTH} characters, and no control characters.`
  }
  const target = parseTarget(query.get('target') ?? '')
  if (target === undefined) return `target must be ${TARGET_FORM}.`
  const since = query.get('since')
  if (since !== null && !/^\d{1,15}$/.test(since)) return 'since must be the id of an event.'
  const wanted = readWanted(query)
  if (typeof wanted === 'string') return wanted
  return {
    ...wanted,
    name,
    target: redactUrlTokens(target.href),
    since: since === null ? null : Number(since),
  }
}

/** Where a forwarder connects: the relay of the server at `from`, with its request as the query. */
export function relayUrl(from: URL, { payload, ...request }: RelayRequest): URL {
  const url = relayAt(from)
  const { text, json } = payload
  const query = { ...request, text, json: json === null ? null : memberText(json) }
  for (const [name, value] of Object.entries(query)) {
    if (value !== null) url.searchParams.set(name, String(value))
  }
  return url
}

/** Of `unix:/path` the form that `ws` takes: the path of the socket, a colon and the request's path. */
function relayAt(from: URL): URL {
  if (from.protocol === 'unix:') return new URL(`ws+unix://${from.pathname}:/relay`)
  const url = new URL(from)
  url.protocol = from.protocol === 'https:' ? 'wss:' : 'ws:'
  url.pathname = `${from.pathname.replace(/\/+$/, '')}/relay`
  url.search = ''
  url.hash = ''
  return url
}
