import { createHash } from 'node:crypto'
import type { Fault } from '../fault.ts'
import { render, type Html } from '../html.ts'
import type { Context } from './context.ts'
import { entityTag, namesTag } from './headers.ts'

/** The parts of a request that an error body may depend on. */
export type FaultRequest = Pick<Context, 'method' | 'path' | 'headers'>

/** Renders a fault in the error shape of a service's contract. */
export type FaultReply = (fault: Fault, request: FaultRequest) => Reply

/** RFC 9457 body of a fault; members in the RFC's order, `type` always `about:blank`. */
export function problem(fault: Fault, instance: string): Reply {
  const body = {
    type: 'about:blank',
    title: fault.title,
    status: fault.status,
    detail: fault.message,
    instance,
  }
  return jsonReply(body, fault.status, fault.headers, 'application/problem+json')
}

/** Header names in lower case; a list sends the header several times. */
export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>

/** What a stream may use of the open socket of its reply. */
export interface Sink {
  /** Sends bytes; bytes that the socket can't take yet count as `unsent`. */
  write(chunk: string | Uint8Array): void
  /** Bytes written but not yet taken by the operating system. */
  unsent: number
  closed: boolean
  /** Resolves when `unsent` is small again or the client is gone. */
  drained(): Promise<void>
  /** Ends the reply in order, after a last chunk. */
  end(chunk?: string | Uint8Array): void
  /** Cuts the client off at once. */
  destroy(): void
  /** Calls back once when the client is gone or the reply ended. */
  onClose(callback: () => void): void
}

/** Opens a stream on the socket once the head is sent. */
export type StreamBody = (sink: Sink) => void

/**
 * A body in pieces, of which several replies may share some: they are sent as they are, never
 * copied.
 */
export interface PiecesBody {
  pieces: readonly (string | Uint8Array)[]
}

/** What a handler returns; `kernel/http/respond.ts` alone writes it to a socket. */
export interface Reply {
  status: number
  headers: ReplyHeaders
  body: string | Uint8Array | PiecesBody | StreamBody | null
}

/** The policy of every page: own origin only, nothing inline, never framed. */
const CONTENT_SECURITY_POLICY =
  "default-src 'self'; base-uri 'none'; form-action 'self'; " +
  "frame-ancestors 'none'; object-src 'none'"

/**
 * Keeps a body out of the processes of other sites' pages, which could load it as an image or a
 * script.
 */
export const SAME_ORIGIN_ONLY = { 'cross-origin-resource-policy': 'same-origin' } as const

/**
 * An HTML page or fragment. A page of another site that opens it in a window gets no hold of that
 * window.
 */
export function htmlReply(page: Html, status = 200, headers: ReplyHeaders = {}): Reply {
  return {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': CONTENT_SECURITY_POLICY,
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cache-control': 'no-store',
      ...SAME_ORIGIN_ONLY,
      ...headers,
    },
    body: render(page),
  }
}

/** A JSON body; `type` for relatives such as `application/problem+json`. */
export function jsonReply(
  value: unknown,
  status = 200,
  headers: ReplyHeaders = {},
  type = 'application/json',
): Reply {
  return {
    status,
    headers: { 'content-type': type, 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(value),
  }
}

/** Bytes or text of a given media type. */
export function bytesReply(
  body: string | Uint8Array | PiecesBody,
  type: string,
  headers: ReplyHeaders = {},
  status = 200,
): Reply {
  return { status, headers: { 'content-type': type, ...headers }, body }
}

/** Bytes with their entity tag. */
export interface TaggedBytes {
  bytes: Uint8Array
  etag: string
}

export function withTag(bytes: Uint8Array): TaggedBytes {
  const hash = createHash('sha256').update(bytes).digest('base64url')
  return { bytes, etag: entityTag(hash.slice(0, 22)) }
}

/** The reply, or 304 where its entity tag is that of a version that the client has already. */
export function unlessKnown(reply: Reply, sent: Context['headers']): Reply {
  const etag = reply.headers['etag']
  const isKnown = typeof etag === 'string' && namesTag(sent['if-none-match'], etag)
  return isKnown ? { ...reply, status: 304, body: null } : reply
}

/** Bytes of a given media type, or 304 where the client has them already. */
export function taggedReply(
  { headers: sent }: Pick<Context, 'headers'>,
  { bytes, etag }: TaggedBytes,
  type: string,
  headers: ReplyHeaders,
): Reply {
  const all = { etag, ...headers }
  if (namesTag(sent['if-none-match'], etag)) return { status: 304, headers: all, body: null }
  return bytesReply(bytes, type, all)
}

/** 303 See Other: a form post that succeeded and continues with a GET. */
export function seeOther(location: string): Reply {
  return { status: 303, headers: { location, 'cache-control': 'no-store' }, body: null }
}

/** The reply of a route that is not for pages of other sites. */
export function sameOriginOnly(reply: Reply): Reply {
  return { ...reply, headers: { ...SAME_ORIGIN_ONLY, ...reply.headers } }
}

/** Names of members that an answer lists; longer ones and others are left out. */
const SHOWN_NAME = /^[\w.-]{1,64}$/
const MAX_SHOWN_NAMES = 10

/** The header that names members which were ignored, so that nobody believes in them. */
export function ignoredHeader(ignored: readonly string[]): Readonly<Record<string, string>> {
  const names = ignored.filter((name) => SHOWN_NAME.test(name))
  if (names.length === 0) return {}
  return { 'ignored-members': names.slice(0, MAX_SHOWN_NAMES).join(', ') }
}
