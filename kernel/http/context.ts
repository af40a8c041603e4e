import type { IncomingHttpHeaders } from 'node:http'
import type { Actor } from '../actor.ts'
import type { BodyResult } from './body.ts'

/**
 * `delivery`: it has bounds of its own. `redirect`: it leads a visitor on. The times of both are
 * measured apart from all others.
 */
export type RequestKind = 'delivery' | 'redirect'

/** One request as a handler sees it. */
export interface Context {
  method: string
  /** Path as sent, without the query. */
  path: string
  /** The route's pattern: the only form of the path that a log line may hold. */
  route: string
  kind: RequestKind | undefined
  params: Readonly<Record<string, string>>
  /** Query text without the `?`. */
  search: string
  headers: IncomingHttpHeaders
  /** `1.1` or `1.0`. */
  httpVersion: string
  /** Name and value in turn, as received. */
  rawHeaders: readonly string[]
  requestId: string
  /** Address of who is connected: the client, or the last proxy before us. */
  peer: string
  /** Address of the client: the peer, or who a trusted proxy says it is. */
  client: string
  receivedAt: Date
  /**
   * Who sends it, by what the connection shows. Code that verifies a token sets its holder here.
   */
  actor: Actor
  /**
   * Reads the whole body once; a body over `limit` bytes is refused without being kept. `eachPart`
   * gets the bytes as they arrive.
   */
  body(limit: number, eachPart?: (part: Buffer) => void): Promise<BodyResult>
  /**
   * Looks who is connected (`kernel/processes/marked.ts`); undefined where that can't be seen, such as
   * over a unix socket or from another machine.
   */
  peerProcess(): 'marked' | 'gone' | undefined
  /** Aborted when the client has its answer or has gone. */
  gone(): AbortSignal
}

/** The query's parameters, decoded. */
export function queryOf(context: Context): URLSearchParams {
  return new URLSearchParams(context.search)
}

/** One request header's value; repeated headers arrive joined by `, `. */
export function headerOf({ headers }: Pick<Context, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** True for a fragment request of htmx. */
export function wantsFragment(context: Context): boolean {
  return context.headers['hx-request'] === 'true'
}
