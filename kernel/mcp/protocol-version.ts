import type { IncomingHttpHeaders } from 'node:http'
import { isObject, objectOf, type JsonObject } from '../json.ts'
import { failureOf, RPC, type RpcFailure, type RpcMessage } from './json-rpc.ts'

/** The stateless version: every request carries its own version and capabilities. */
const STATELESS_VERSION = '2026-07-28'

/** Versions that begin with the handshake `initialize`, newest first. */
const HANDSHAKE_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

/** Every supported protocol version, newest first. */
export const SUPPORTED_VERSIONS = [STATELESS_VERSION, ...HANDSHAKE_VERSIONS]

/** Names under `_meta`. */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

/** The two kinds of protocol versions: 2026-07-28, or the earlier ones with a handshake. */
export type Protocol = 'stateless' | 'handshake'

/**
 * Both protocols share one URL. A request is stateless when its `_meta` or its header says so. So
 * is one with an unknown version: only the stateless protocol has an error for that.
 */
export function protocolOf(message: RpcMessage, headers: IncomingHttpHeaders): Protocol {
  const params = 'params' in message ? message.params : undefined
  const wanted = metaOf(params)[META.version]
  if (headers['mcp-protocol-version'] === STATELESS_VERSION) return 'stateless'
  return typeof wanted === 'string' && !hasHandshake(wanted) ? 'stateless' : 'handshake'
}

/** The `_meta` member of a request's parameters; an empty object if it is missing. */
export function metaOf(params: JsonObject | undefined) {
  return objectOf(params?.['_meta'])
}

/**
 * Checks the version header of a request after a handshake. Without the header the version is
 * 2025-03-26, which did not have it.
 */
export function checkHandshake(headers: IncomingHttpHeaders) {
  const version = headers['mcp-protocol-version']
  if (version === undefined || hasHandshake(version)) return undefined
  return unsupportedVersion(String(version))
}

/** Whether a checked request's version has links to resources in results: all but 2025-03-26. */
export function hasResourceLinks(protocol: Protocol, headers: IncomingHttpHeaders): boolean {
  const version = headers['mcp-protocol-version']
  return protocol === 'stateless' || (version !== undefined && version !== '2025-03-26')
}

/**
 * The version that the response to `initialize` names: the client's, or the newest with a
 * handshake.
 */
export function negotiate(requested: unknown) {
  return hasHandshake(requested) ? requested : HANDSHAKE_VERSIONS[0]
}

/**
 * Checks a stateless request: headers that differ from the body (-32020), a body without its
 * `_meta` (-32602), an unsupported version (-32022). All are answered with 400.
 */
export function checkStateless(
  method: string,
  params: JsonObject,
  headers: IncomingHttpHeaders,
): RpcFailure | undefined {
  const meta = metaOf(params)
  const version = meta[META.version]
  const header = headers['mcp-protocol-version']
  if (header === undefined) return mismatch('MCP-Protocol-Version is missing')
  if (version !== undefined && header !== version) {
    return mismatch('MCP-Protocol-Version does not match the version in _meta')
  }
  if (typeof version !== 'string' || !isObject(meta[META.capabilities])) {
    const message = `params._meta must hold ${META.version} and ${META.capabilities}.`
    return failureOf(RPC.invalidParams, message)
  }
  if (version !== STATELESS_VERSION) return unsupportedVersion(version)
  if (headers['mcp-method'] !== method) return mismatch('Mcp-Method does not match the method')
  const named = NAMED_BY[method]
  if (named === undefined || typeof params[named] !== 'string') return undefined
  const name = decodeHeader(headers['mcp-name'])
  return name === params[named] ? undefined : mismatch(`Mcp-Name does not match params.${named}`)
}

/** Requests whose header `Mcp-Name` repeats a parameter, and which one. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'resources/read': 'uri',
}

const BASE64 = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/

/**
 * A header's text, decoded from `=?base64?…?=` where that stands; undefined when it is malformed.
 */
function decodeHeader(value: string | string[] | undefined) {
  if (typeof value !== 'string') return undefined
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value
  const encoded = BASE64.exec(value)?.[1]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8')
}

function hasHandshake(version: unknown): version is string {
  return HANDSHAKE_VERSIONS.some((known) => known === version)
}

function mismatch(what: string) {
  return failureOf(RPC.headerMismatch, `Header mismatch: ${what}.`)
}

function unsupportedVersion(requested: string) {
  const data = { supported: SUPPORTED_VERSIONS, requested }
  return failureOf(RPC.unsupportedVersion, 'Unsupported protocol version.', 400, data)
}
