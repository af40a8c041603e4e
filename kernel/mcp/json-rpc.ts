import { isUtf8 } from 'node:buffer'
import { isObject, parseJson, type JsonObject } from '../json.ts'

/** An id as MCP allows it: text or a whole number, never null. */
export type RpcId = string | number

export interface RpcRequest {
  kind: 'request'
  id: RpcId
  method: string
  params: JsonObject
}

/** One message as a client may send it. */
export type RpcMessage =
  | RpcRequest
  | { kind: 'notification'; method: string; params: JsonObject }
  | { kind: 'response' }

/** Why a request has no result. `status` is its HTTP status where the protocol version has one. */
export interface RpcFailure {
  code: number
  message: string
  status: number
  data?: unknown
}

/** Error codes of JSON-RPC and, from -32020 on, of MCP. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022,
} as const

/** A body that is not a message; with the id of the body where it has a valid one. */
export interface BrokenMessage {
  kind: 'broken'
  id: RpcId | null
  failure: RpcFailure
}

/** Reads a body as one message. Batches are refused: protocol version 2025-06-18 removed them. */
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

/** A response as JSON in pieces: its own text, and bytes that several responses share. */
export type Envelope = readonly (string | Uint8Array)[]

/** The response with a result. `shared` has further members of it, as JSON without braces. */
export function resultEnvelope(id: RpcId, result: JsonObject, shared?: Uint8Array) {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{`
  const rest = `${JSON.stringify(result).slice(1)}}`
  if (shared === undefined) return [head + rest]
  return [head, shared, rest.startsWith('}') ? rest : `,${rest}`]
}

/** The response with an error. The id is null where none could be read (JSON-RPC 2.0). */
export function errorEnvelope(id: RpcId | null, { code, message, data }: RpcFailure) {
  return [JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } })]
}

/** A failure of a request, answered with 400 unless another status is given. */
export function failureOf(code: number, message: string, status = 400, data?: unknown) {
  return { code, message, status, data }
}

function isId(value: unknown): value is RpcId {
  return typeof value === 'string' || Number.isSafeInteger(value)
}

function broken(id: RpcId | null, code: number, message: string): BrokenMessage {
  return { kind: 'broken', id, failure: failureOf(code, message) }
}

function invalid(id: RpcId | null, message: string) {
  return broken(id, RPC.invalidRequest, message)
}
