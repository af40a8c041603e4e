import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { lazy } from '../../kernel/lazy.ts'
import { nullable } from '../../db/rows.ts'

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

const serverSchema = lazy(() => Compile(ServerMessage))
const clientSchema = lazy(() => Compile(ClientMessage))

export const NEXT = JSON.stringify({ type: 'next' } satisfies ClientMessage)

/** A message of the server; undefined for anything else. */
export function readServerMessage(text: string): ServerMessage | undefined {
  const value = readJson(text)
  return serverSchema().Check(value) ? value : undefined
}

/** A message of a forwarder; undefined for anything else. */
export function readClientMessage(message: string | Buffer): ClientMessage | undefined {
  const value = typeof message === 'string' ? readJson(message) : undefined
  return clientSchema().Check(value) ? value : undefined
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // SyntaxError: no JSON, so none of our messages.
    return undefined
  }
}
