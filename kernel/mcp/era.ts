import type { IncomingHttpHeaders } from 'node:http'
import { isObject, RPC, type Members, type RpcFailure } from './json-rpc.ts'

/** The stateless revision: every request carries its own version and capabilities. */
const MODERN_VERSION = '2026-07-28'

/** Revisions that begin with a handshake, newest first. */
const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const

/** Every revision that is spoken here, newest first. */
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS]

/** What a request says of itself under `_meta`. */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
} as const

export type Era = 'modern' | 'legacy'

/** The parts of a message that tell its era. */
interface Spoken {
  readonly kind: string
  readonly method?: string
  readonly params?: Members
}

/**
 * Both eras share one URL: a request is modern when its `_meta` or its header says so, or names a
 * version that is unknown here, since only the modern era has an answer to that.
 */
export function eraOf(message: Spoken, headers: IncomingHttpHeaders): Era {
  const wanted = metaOf(message.params)[META.version]
  if (headers['mcp-protocol-version'] === MODERN_VERSION) return 'modern'
  return typeof wanted === 'string' && !isLegacy(wanted) ? 'modern' : 'legacy'
}

/** The `_meta` member of a request's parameters; empty when there is none. */
export function metaOf(params: Members | undefined): Members {
  const meta = params?.['_meta']
  return isObject(meta) ? meta : {}
}

/** The capabilities that a modern request declares. */
export function capabilitiesOf(params: Members): Members {
  const capabilities = metaOf(params)[META.capabilities]
  return isObject(capabilities) ? capabilities : {}
}

/** A legacy request without the header counts as 2025-03-26, which had none. */
export function checkLegacy(headers: IncomingHttpHeaders): RpcFailure | undefined {
  const version = headers['mcp-protocol-version']
  if (version === undefined || (typeof version === 'string' && isLegacy(version))) return undefined
  return unsupportedVersion(String(version))
}

/** The revision that the answer to `initialize` names: the client's, or the newest of the era. */
export function negotiate(requested: unknown): string {
  return typeof requested === 'string' && isLegacy(requested) ? requested : LEGACY_VERSIONS[0]
}

/**
 * The checks of a modern request in the order in which they can be told apart: headers that don't
 * agree with the body (-32020), a body without its `_meta` (-32602), a version that is not spoken
 * (-32022). All are answered with 400.
 */
export function checkModern(
  method: string,
  params: Members,
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
    return { code: RPC.invalidParams, message, status: 400 }
  }
  if (version !== MODERN_VERSION) return unsupportedVersion(version)
  if (headers['mcp-method'] !== method) return mismatch('Mcp-Method does not match the method')
  const named = NAMED_BY[method]
  if (named === undefined || typeof params[named] !== 'string') return undefined
  const name = decodeHeader(headers['mcp-name'])
  return name === params[named] ? undefined : mismatch(`Mcp-Name does not match params.${named}`)
}

/** Requests whose header `Mcp-Name` repeats a parameter, and which one. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
}

const BASE64 = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/

/** A header's text, decoded from `=?base64?…?=` where that stands; undefined when it is malformed. */
function decodeHeader(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string') return undefined
  if (!value.startsWith('=?base64?') || !value.endsWith('?=')) return value
  const encoded = BASE64.exec(value)?.[1]
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString('utf8')
}

function isLegacy(version: string): boolean {
  return LEGACY_VERSIONS.some((known) => known === version)
}

function mismatch(what: string): RpcFailure {
  return { code: RPC.headerMismatch, message: `Header mismatch: ${what}.`, status: 400 }
}

function unsupportedVersion(requested: string): RpcFailure {
  return {
    code: RPC.unsupportedVersion,
    message: 'Unsupported protocol version.',
    status: 400,
    data: { supported: SUPPORTED_VERSIONS, requested },
  }
}
