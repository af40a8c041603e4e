import { isUtf8 } from 'node:buffer'

/** The members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>

/** An id as MCP allows it: text or a whole number, never null. */
export type RpcId = string | number

/** One message as a client may send it. */
export type RpcMessage =
  | {
      readonly kind: 'request'
      readonly id: RpcId
      readonly method: string
      readonly params: Members
    }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Members }
  | { readonly kind: 'response' }

/** Why a request has no result; `status` is the HTTP status of an era that maps errors to one. */
export interface RpcFailure {
  readonly code: number
  readonly message: string
  readonly status: number
  readonly data?: unknown
}

/** Error codes of JSON-RPC and, from -32020 on, of MCP. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const

/** A body that is no message; the id is given back where the body has a usable one. */
export interface BrokenMessage {
  readonly kind: 'broken'
  readonly id: RpcId | null
  readonly failure: RpcFailure
}

/** Reads a body as one message. A batch is refused: the revisions from 2025-06-18 on have none. */
export function readMessage(body: Buffer): RpcMessage | BrokenMessage {
  const value = isUtf8(body) ? parseJson(body.toString('utf8')) : undefined
  if (value === undefined) return broken(null, RPC.parseError, 'The body is not JSON in UTF-8.')
  if (Array.isArray(value)) return invalid(null, 'Batches are not supported; send one message.')
  if (!isObject(value)) return invalid(null, 'The message must be a JSON object.')
  const { jsonrpc, id, method, params = {} } = value
  const known = isId(id) ? id : null
  if (jsonrpc !== '2.0') return invalid(known, 'jsonrpc must be "2.0".')
  if (method === undefined && ('result' in value || 'error' in value)) return { kind: 'response' }
  if (typeof method !== 'string') return invalid(known, 'method must be a string.')
  if (!isObject(params)) return invalid(known, 'params must be an object.')
  if (id === undefined) return { kind: 'notification', method, params }
  if (!isId(id)) return invalid(null, 'id must be a string or a whole number.')
  return { kind: 'request', id, method, params }
}

/** A response as JSON in pieces: its own text, and bytes that it shares with others. */
export type Envelope = readonly (string | Uint8Array)[]

/** The response that carries a result; `shared` are further members of it, as JSON without braces. */
export function resultEnvelope(id: RpcId, result: Members, shared?: Uint8Array): Envelope {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{`
  const rest = `${JSON.stringify(result).slice(1)}}`
  if (shared === undefined) return [head + rest]
  return [head, shared, rest.startsWith('}') ? rest : `,${rest}`]
}

/** The response that carries an error; without an id that could be read it is null (JSON-RPC 2.0). */
export function errorEnvelope(id: RpcId | null, { code, message, data }: RpcFailure): Envelope {
  const error = { code, message, ...(data !== undefined && { data }) }
  return [JSON.stringify({ jsonrpc: '2.0', id, error })]
}

/** A request whose parameters name something that is not there, or can't be read. */
export function invalidParams(message: string, data?: unknown): RpcFailure {
  return { code: RPC.invalidParams, message, status: 200, ...(data !== undefined && { data }) }
}

export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isId(value: unknown): value is RpcId {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // SyntaxError: answered with -32700.
    return undefined
  }
}

function broken(id: RpcId | null, code: number, message: string): BrokenMessage {
  return { kind: 'broken', id, failure: { code, message, status: 400 } }
}

function invalid(id: RpcId | null, message: string): BrokenMessage {
  return broken(id, RPC.invalidRequest, message)
}
