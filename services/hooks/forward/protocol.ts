import Type from 'typebox'
import { nullable } from '../../../db/sql-file.ts'
import { parseJson } from '../../../kernel/json.ts'
import { field, fits, parsed, validateTexts, withDefault } from '../../../kernel/validate.ts'
import { filterFields } from '../event-filter.ts'
import { redactUrlTokens } from '../redact.ts'
import { parseTarget, TARGET_FORM } from '../outgoing.ts'
import { cleanText } from '../event-fields.ts'

// What is said over the WebSocket `/relay`: JSON as text, and an event's bytes as one binary message.

/** The subprotocol, with its version. */
export const RELAY_PROTOCOL = 'gatehouse-relay-1'

/** Server: the first message, and where the forwarder stands. */
const Ready = Type.Object({
  type: Type.Literal('ready'),
  name: Type.String(),
  /** The highest event that this forwarder is done with. */
  position: Type.Integer(),
  /** True for a name that connected before: it goes on where it stood, whatever `since` says. */
  known: Type.Boolean(),
  /** False when nobody is called like the provider that is asked for. */
  provider_known: Type.Boolean(),
})

/** Server: retention removed events that were not forwarded, up to this one at most. */
const Gap = Type.Object({ type: Type.Literal('gap'), removed_through: Type.Integer() })

/**
 * Server: the next event, in answer to `next`. Its bytes follow as a binary message, unless `refused`
 * says why it can't be sent on; then there are no headers either.
 */
export const RelayEvent = Type.Object({
  type: Type.Literal('event'),
  id: Type.Integer(),
  provider: Type.String(),
  event_type: nullable(Type.String()),
  received_at: Type.String({ format: 'date-time' }),
  payload_size: Type.Integer(),
  headers: nullable(Type.Record(Type.String(), Type.String())),
  refused: nullable(Type.String()),
})
export type RelayEvent = Type.Static<typeof RelayEvent>

const ServerMessage = Type.Union([Ready, Gap, RelayEvent])
export type ServerMessage = Type.Static<typeof ServerMessage>

/** Forwarder: the next event, please; answered when there is one. */
const Next = Type.Object({ type: Type.Literal('next') })

/** Forwarder: what came of one attempt; `done` when the event is not wanted again. */
export const RelayResult = Type.Object({
  type: Type.Literal('result'),
  id: Type.Integer(),
  /** Status of the target's answer; null when there was none. */
  status: nullable(Type.Integer({ minimum: 100, maximum: 999 })),
  ms: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
  /** Why there was no good answer, one line for people. */
  detail: nullable(Type.String({ maxLength: 1_000 })),
  done: Type.Boolean(),
})
export type RelayResult = Type.Static<typeof RelayResult>

const ClientMessage = Type.Union([Next, RelayResult])
export type ClientMessage = Type.Static<typeof ClientMessage>

export const NEXT = JSON.stringify({ type: 'next' } satisfies ClientMessage)

/** A message of the server; undefined for anything else. */
export function readServerMessage(text: string): ServerMessage | undefined {
  const value = parseJson(text)
  return fits(ServerMessage, value) ? value : undefined
}

/** A message of a forwarder; undefined for anything else. */
export function readClientMessage(message: string | Buffer): ClientMessage | undefined {
  const value = typeof message === 'string' ? parseJson(message) : undefined
  return fits(ClientMessage, value) ? value : undefined
}

/** The most characters of a name. */
export const RELAY_NAME_LENGTH = 200
const NAME_FORM = `must have 1 to ${RELAY_NAME_LENGTH} characters, and no control characters.`

/** What a forwarder asks for when it connects. */
const RelayRequest = Type.Object({
  /** Its position is stored under this name. */
  name: field(Type.String(), NAME_FORM, [isName, NAME_FORM]),
  /** Where it sends the events, without tokens: for the list of replays. */
  target: parsed(Type.String(), `must be ${TARGET_FORM}.`, (given) => {
    const target = parseTarget(String(given))
    return target && redactUrlTokens(target.href)
  }),
  /** The first event that a new name gets; null for those from now on. */
  since: parsed(
    withDefault(nullable(Type.Integer()), null),
    'must be the id of an event.',
    (given) => (/^\d{1,15}$/.test(String(given)) ? Number(given) : undefined),
  ),
  ...filterFields,
})
export type RelayRequest = Type.Static<typeof RelayRequest>

/** Reads the query of `/relay`. */
export function readRelayRequest(query: URLSearchParams): RelayRequest {
  return validateTexts(RelayRequest, (name) => query.get(name))
}

function isName(text: string): boolean {
  return cleanText(text) === text && text.length <= RELAY_NAME_LENGTH
}

/** Where a forwarder connects: the relay of the server at `from`, with its request as the query. */
export function relayUrl(from: URL, request: RelayRequest): URL {
  const url = relayAt(from)
  for (const [name, value] of Object.entries(request)) {
    if (value !== null && value !== '') url.searchParams.set(name, String(value))
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
