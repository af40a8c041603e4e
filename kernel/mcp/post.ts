import type { Clock } from '../time.ts'
import type { Context } from '../http/context.ts'
import { unavailable, type FaultValue } from '../fault.ts'
import { mediaType } from '../http/headers.ts'
import { bytesReply, type Reply } from '../http/reply.ts'
import { capabilitiesOf, checkLegacy, checkModern, eraOf, metaOf, type Era } from './era.ts'
import {
  errorEnvelope,
  isObject,
  readMessage,
  resultEnvelope,
  RPC,
  type Envelope,
  type Members,
  type RpcFailure,
  type RpcId,
} from './json-rpc.ts'
import { calledTool, runMethod } from './methods.ts'
import type { Call, McpServer } from './server.ts'
import { dressResult } from './shown.ts'
import { streamAnswer } from './stream.ts'

/** The largest message. */
const MESSAGE_LIMIT = 1024 * 1024

export interface PostOptions {
  readonly clock: Clock
  /** Aborted when who asks may ask no more, such as by a token that is revoked meanwhile. */
  readonly signal: AbortSignal
}

/** Who waits for an answer, as far as a handler may know. */
type Listener = Pick<Call, 'gone' | 'progress'>

/** One request, checked and ready to be run. */
interface Ready {
  readonly era: Era
  readonly id: RpcId
  readonly method: string
  readonly params: Members
}

/**
 * Answers a POST to an MCP endpoint: one JSON-RPC message of either era (2026-07-28, or 2025-03-26
 * to 2025-11-25). What is wrong with the HTTP request itself is a fault (413, 415, 400); everything
 * after that is a JSON-RPC answer.
 */
export async function postMcp(
  server: McpServer,
  context: Context,
  options: PostOptions,
): Promise<Reply | FaultValue> {
  if (mediaType(context.headers['content-type']) !== 'application/json') return NOT_JSON
  const body = await context.body(MESSAGE_LIMIT)
  if (!body.ok) return BODY_FAULTS[body.reason]

  const message = readMessage(body.bytes)
  if (message.kind === 'broken') return failed(message.id, message.failure)
  const era = eraOf(message, context.headers)
  if (message.kind !== 'request') return acknowledge(message.kind, era, context)
  const { id, method, params } = message
  const refusal =
    era === 'modern' ? checkModern(method, params, context.headers) : checkLegacy(context.headers)
  if (refusal !== undefined) return failed(id, refusal)

  const ready = { era, id, method, params }
  const tool = method === 'tools/call' ? calledTool(server, params) : undefined
  if (tool?.streams === true && (context.headers.accept ?? '').includes('text/event-stream')) {
    const { progressToken } = metaOf(params)
    return streamAnswer({ ...options, progressToken }, async (listener) => {
      return (await answer(server, ready, listener)).envelope
    })
  }
  const listener: Listener = {
    gone: () => AbortSignal.any([options.signal, context.gone()]),
    progress: () => undefined,
  }
  const { envelope, status } = await answer(server, ready, listener)
  return envelopeReply(envelope, status)
}

/** Nothing is answered to a notification. A response would be to a question that is never asked. */
function acknowledge(kind: 'notification' | 'response', era: Era, context: Context): Reply {
  const refusal = era === 'legacy' ? checkLegacy(context.headers) : undefined
  if (refusal !== undefined) return failed(null, refusal)
  if (kind === 'response' && era === 'modern') return failed(null, NO_RESPONSES)
  return { status: 202, headers: {}, body: null }
}

async function answer(
  server: McpServer,
  { era, id, method, params }: Ready,
  { gone, progress }: Listener,
): Promise<{ readonly envelope: Envelope; readonly status: number }> {
  const { inputResponses, requestState } = params
  const call = {
    capabilities: capabilitiesOf(params),
    inputResponses: isObject(inputResponses) ? inputResponses : {},
    requestState: typeof requestState === 'string' ? requestState : undefined,
    gone,
    progress,
  }
  const outcome = await runMethod(server, era, method, params, call)
  if ('failure' in outcome) {
    const { failure } = outcome
    return { envelope: errorEnvelope(id, failure), status: statusOf(failure, era) }
  }
  const result = dressResult(server, era, outcome)
  return { envelope: resultEnvelope(id, result, outcome.shared), status: 200 }
}

/** The legacy era carries every error of a method in a 200. */
function statusOf(failure: RpcFailure, era: Era): number {
  return era === 'modern' ? failure.status : 200
}

function failed(id: RpcId | null, failure: RpcFailure): Reply {
  return envelopeReply(errorEnvelope(id, failure), failure.status)
}

function envelopeReply(pieces: Envelope, status: number): Reply {
  return bytesReply({ pieces }, 'application/json', { 'cache-control': 'no-store' }, status)
}

const NO_RESPONSES: RpcFailure = {
  code: RPC.invalidRequest,
  message: 'A client sends requests and notifications only.',
  status: 400,
}

const NOT_JSON: FaultValue = {
  status: 415,
  code: 'UNSUPPORTED_MEDIA_TYPE',
  detail: 'The body must be JSON: application/json.',
}

const BODY_FAULTS: Readonly<Record<'too-large' | 'aborted' | 'overloaded', FaultValue>> = {
  'too-large': {
    status: 413,
    code: 'BODY_TOO_LARGE',
    detail: `The message exceeds ${MESSAGE_LIMIT} bytes.`,
  },
  aborted: { status: 400, code: 'BAD_REQUEST', detail: 'The message did not arrive whole.' },
  overloaded: unavailable('More is arriving than can be read; try again shortly.'),
}
