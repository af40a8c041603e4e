import type { Context } from '../http/context.ts'
import { readBytes } from '../http/read-body.ts'
import { bytesReply, type Reply, type Sink } from '../http/reply.ts'
import { encodeFrame, KEEP_ALIVE, STREAM_HEADERS } from '../http/sse.ts'
import type { Actor } from '../actor.ts'
import type { Clock } from '../time.ts'
import {
  errorEnvelope,
  failureOf,
  readMessage,
  resultEnvelope,
  RPC,
  type Envelope,
  type RpcFailure,
  type RpcId,
  type RpcRequest,
} from './json-rpc.ts'
import { calledTool, runMethod, toResult } from './methods.ts'
import {
  checkHandshake,
  checkStateless,
  hasResourceLinks,
  metaOf,
  protocolOf,
  type Protocol,
} from './protocol-version.ts'
import type { Call, McpServer } from './server.ts'

/** Largest message, in bytes. */
const MESSAGE_LIMIT = 1024 * 1024
const KEEP_ALIVE_MS = 15_000

export interface PostOptions {
  clock: Clock
  /** Aborted when the caller may ask no more, such as when its token is revoked. */
  signal: AbortSignal
}

/** What a call knows of who made it. */
type Caller = Omit<Call, 'canLink'>

/** A request whose headers and version were checked. */
interface CheckedRequest extends RpcRequest {
  protocol: Protocol
  canLink: boolean
}

/**
 * Answers a POST to an MCP endpoint: one JSON-RPC message of protocol version 2026-07-28, or
 * 2025-03-26 to 2025-11-25. Throws a Fault where the HTTP request is wrong (415, 413, 400, 503);
 * later failures are JSON-RPC responses.
 */
export async function postMcp(
  server: McpServer,
  context: Context,
  options: PostOptions,
): Promise<Reply> {
  const message = readMessage(await readMessageBytes(context))
  if (message.kind === 'broken') return failed(message.id, message.failure)
  const protocol = protocolOf(message, context.headers)
  if (message.kind !== 'request') return acknowledge(message.kind, protocol, context)
  const { id, method, params } = message
  const refusal =
    protocol === 'stateless'
      ? checkStateless(method, params, context.headers)
      : checkHandshake(context.headers)
  if (refusal !== undefined) return failed(id, refusal)

  const canLink = hasResourceLinks(protocol, context.headers)
  const request = { ...message, protocol, canLink }
  const tool = method === 'tools/call' ? calledTool(server, params) : undefined
  if (tool?.streams === true && (context.headers.accept ?? '').includes('text/event-stream')) {
    return streamReply(server, request, context.actor, options)
  }
  const { envelope, status } = await run(server, request, {
    actor: context.actor,
    gone: () => AbortSignal.any([options.signal, context.gone()]),
    progress: () => undefined,
  })
  return envelopeReply(envelope, status)
}

function readMessageBytes(context: Context) {
  return readBytes(context, 'application/json', MESSAGE_LIMIT, {
    unsupported: 'The body must be JSON: application/json.',
    tooLarge: `The message exceeds ${MESSAGE_LIMIT} bytes.`,
    aborted: 'The message did not arrive whole.',
    overloaded: 'More is arriving than can be read; try again shortly.',
  })
}

/** A notification gets no result. A response answers a question that this server never asks. */
function acknowledge(
  kind: 'notification' | 'response',
  protocol: Protocol,
  context: Context,
): Reply {
  const refusal = protocol === 'handshake' ? checkHandshake(context.headers) : undefined
  if (refusal !== undefined) return failed(null, refusal)
  if (kind === 'response' && protocol === 'stateless') {
    const problem = 'A client sends requests and notifications only.'
    return failed(null, failureOf(RPC.invalidRequest, problem))
  }
  return { status: 202, headers: {}, body: null }
}

async function run(
  server: McpServer,
  { protocol, canLink, id, method, params }: CheckedRequest,
  caller: Caller,
): Promise<{ envelope: Envelope; status: number }> {
  const call = { ...caller, canLink }
  const outcome = await runMethod(server, protocol, method, params, call)
  if ('failure' in outcome) {
    const { failure } = outcome
    // With a handshake, every error of a method is carried in a 200.
    const status = protocol === 'stateless' ? failure.status : 200
    return { envelope: errorEnvelope(id, failure), status }
  }
  const result = toResult(server, protocol, outcome)
  return { envelope: resultEnvelope(id, result, outcome.shared), status: 200 }
}

/**
 * Answers a request as an event stream that ends with its response. A client that goes away has
 * cancelled the request. Comments keep proxies from closing a quiet connection.
 */
function streamReply(
  server: McpServer,
  request: CheckedRequest,
  actor: Actor,
  { clock, signal }: PostOptions,
): Reply {
  const { progressToken } = metaOf(request.params)
  const wantsProgress = typeof progressToken === 'string' || typeof progressToken === 'number'
  function stream(sink: Sink) {
    const closed = new AbortController()
    const stopKeepAlive = clock.every(KEEP_ALIVE_MS, () => sink.write(KEEP_ALIVE))
    sink.onClose(() => {
      stopKeepAlive()
      closed.abort()
    })
    const call: Caller = {
      actor,
      gone: () => AbortSignal.any([signal, closed.signal]),
      progress(progress, total, message) {
        if (!wantsProgress) return
        const params = { progressToken, progress, total, message }
        const notice = { jsonrpc: '2.0', method: 'notifications/progress', params }
        send(sink, [JSON.stringify(notice)])
      },
    }
    void run(server, request, call).then(
      ({ envelope }) => {
        send(sink, envelope)
        sink.end()
      },
      // `run` turns every error into a response. A throw is a bug, and the client must see an end.
      () => sink.destroy(),
    )
  }
  return { status: 200, headers: STREAM_HEADERS, body: stream }
}

function send(sink: Sink, message: Envelope) {
  const data = Buffer.concat(message.map((piece) => Buffer.from(piece))).toString('utf8')
  sink.write(encodeFrame({ event: 'message', data }))
}

function failed(id: RpcId | null, failure: RpcFailure): Reply {
  return envelopeReply(errorEnvelope(id, failure), failure.status)
}

function envelopeReply(pieces: Envelope, status: number): Reply {
  return bytesReply({ pieces }, 'application/json', { 'cache-control': 'no-store' }, status)
}
