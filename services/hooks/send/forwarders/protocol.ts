import * as Type from '../../../../kernel/schema.ts'
import { parseJson } from '../../../../kernel/json.ts'
import { trimEnd } from '../../../../kernel/text.ts'
import { EventSummary } from '../../../../db/hooks/log/events.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { field, fits, parsed, withDefault } from '../../../../kernel/validate.ts'
import { filterFields } from '../../log/events/filter.ts'
import { redactUrlTokens } from '../../redact.ts'
import { isSuccess, parseTarget, TARGET_FORM } from '../replays/outgoing.ts'
import { cleanText } from '../../receive/deliveries/fields.ts'

// The messages of the WebSocket `/relay`: JSON as text, an event's bytes as one binary message.

/** The subprotocol, with its version. */
export const FORWARD_PROTOCOL = 'gatehouse-relay-1'

/** Server: the first message, with the forwarder's position. */
const Ready = Type.Object({
  type: Type.Literal('ready'),
  name: Type.String(),
  /** The newest event that this forwarder has finished. */
  position: Type.Integer(),
  /** True for a name that connected before: it resumes at its position and ignores `since`. */
  known: Type.Boolean(),
  /** False when no provider has the requested name. */
  provider_known: Type.Boolean(),
})

/** Server: retention removed events that were not forwarded; this is the newest removed one. */
const Gap = Type.Object({ type: Type.Literal('gap'), removed_through: Type.Integer() })

/**
 * Server: the next event, in answer to `next`. Its bytes follow as a binary message. If the event
 * can't be sent, `refused` says why; then `headers` is null and no bytes follow.
 */
export const ForwardedEvent = Type.Object({
  ...Type.Pick(EventSummary, ['id', 'provider', 'event_type', 'payload_size']).properties,
  type: Type.Literal('event'),
  received_at: Type.String({ format: 'date-time' }),
  headers: nullable(Type.Record(Type.String())),
  refused: nullable(Type.String()),
  /** True where a person sends it once more: it is delivered even if it was delivered before. */
  again: Type.Optional(Type.Boolean()),
})
export type ForwardedEvent = Type.Static<typeof ForwardedEvent>

export const ServerMessage = Type.Union([Ready, Gap, ForwardedEvent])
export type ServerMessage = Type.Static<typeof ServerMessage>

/** Forwarder: asks for the next event; the server answers once there is one. */
const Next = Type.Object({ type: Type.Literal('next') })

/** Forwarder: the result of one attempt; `done` when the event must not be sent again. */
export const ForwardResult = Type.Object({
  type: Type.Literal('result'),
  id: Type.Integer(),
  /** Status of the target's answer; null without an answer. */
  status: nullable(Type.Integer({ minimum: 100, maximum: 999 })),
  /** Of a program in place of a target, if it ended by itself. */
  exit_code: Type.Optional(Type.Integer({ minimum: 0, maximum: 255 })),
  ms: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
  /** Why the delivery failed, one line for people. */
  detail: nullable(Type.String({ maxLength: 1_000 })),
  done: Type.Boolean(),
})
export type ForwardResult = Type.Static<typeof ForwardResult>

/** Whether an attempt was successful: a target answered with 2xx, or a program exited with 0. */
export function isDelivered(result: Pick<ForwardResult, 'status' | 'exit_code'>): boolean {
  return isSuccess(result.status) || result.exit_code === 0
}

export const ClientMessage = Type.Union([Next, ForwardResult])
export type ClientMessage = Type.Static<typeof ClientMessage>

export const NEXT = JSON.stringify({ type: 'next' } satisfies ClientMessage)

/** A message of the other side; undefined for anything else. */
export function readMessage<S extends Type.TSchema>(
  schema: S,
  message: string | Buffer,
): Type.Static<S> | undefined {
  if (typeof message !== 'string') return undefined
  const value = parseJson(message)
  return fits(schema, value) ? value : undefined
}

/** Why a side ends the connection whose messages are out of order. */
export const BREACH = 'The messages do not follow the relay protocol.'

/** Characters of a name. */
export const MAX_NAME_LENGTH = 200
const NAME_FORM = `must have 1 to ${MAX_NAME_LENGTH} characters, and no control characters.`

/** The query with which a forwarder connects. */
export const ForwardRequest = Type.Object({
  /** Its position is stored under this name. */
  name: field(Type.String(), NAME_FORM, [isName, NAME_FORM]),
  /** Its target without tokens, or `exec:` and its program's name, for the list of replays. */
  target: parsed(Type.String(), `must be ${TARGET_FORM}, or exec:NAME.`, (given) =>
    readShownTarget(String(given)),
  ),
  /** The first event that a new name gets; null for events from now on. */
  since: parsed(
    withDefault(nullable(Type.Integer()), null),
    'must be the id of an event.',
    (given) => (/^\d{1,15}$/.test(String(given)) ? Number(given) : undefined),
  ),
  /** Whether only the newest event that waits is sent; the older ones are passed over. */
  coalesce: field(withDefault(Type.Boolean(), false), 'must be true or false.'),
  ...filterFields,
})
export type ForwardRequest = Type.Static<typeof ForwardRequest>

function isName(text: string): boolean {
  return cleanText(text) === text && text.length <= MAX_NAME_LENGTH
}

function readShownTarget(text: string): string | undefined {
  if (/^exec:./s.test(text)) return isName(text) ? text : undefined
  const target = parseTarget(text)
  return target && redactUrlTokens(target.href)
}

/** The URL of `/relay` at the server `from`, with the request as the query. */
export function forwardUrl(from: URL, request: ForwardRequest): URL {
  const url = webSocketUrl(from)
  for (const [name, value] of Object.entries(request)) {
    if (value !== null && value !== '' && value !== false)
      url.searchParams.set(name, String(value))
  }
  return url
}

/** For `unix:/path`, `ws` expects the socket's path, a colon and the request's path. */
function webSocketUrl(from: URL): URL {
  if (from.protocol === 'unix:') return new URL(`ws+unix://${from.pathname}:/relay`)
  const url = new URL(from)
  url.protocol = from.protocol === 'https:' ? 'wss:' : 'ws:'
  url.pathname = `${trimEnd(from.pathname, /\//)}/relay`
  url.search = ''
  url.hash = ''
  return url
}
