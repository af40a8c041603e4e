import type { IncomingHttpHeaders } from 'node:http'
import type { Context } from '../../kernel/http/context.ts'
import type { Reply, ReplyHeaders } from '../../kernel/http/reply.ts'
import type { Answer, Route } from '../../kernel/http/router.ts'

/** The origin of an extension: Chromium and its relatives make ids of 32 letters. */
const EXTENSION = /^chrome-extension:\/\/[a-p]{32}$/

/** What an extension may send, and for how long its browser need not ask again. */
const PREFLIGHT = {
  'access-control-allow-methods': 'GET, POST, PUT, DELETE',
  'access-control-allow-headers': 'authorization, content-type, if-match',
  'access-control-max-age': '600',
}

/**
 * Lets an extension of the browser read a reply of the API (CORS). Pages of other sites may not:
 * they could find out that there is a Gatehouse in the private network of their visitors. Nothing
 * that the browser adds by itself counts in the API, so an extension needs a token as any program.
 */
export function extensionHeaders({ origin = '' }: IncomingHttpHeaders): ReplyHeaders {
  return EXTENSION.test(origin) ? { 'access-control-allow-origin': origin } : {}
}

/** An operation whose replies an extension may read. */
export function openToExtensions<Operation extends Pick<Route, 'handle'>>(
  operation: Operation,
): Operation {
  async function handle(context: Context): Promise<Answer> {
    const reply = await operation.handle(context)
    if ('open' in reply) return reply
    return { ...reply, headers: { ...reply.headers, ...extensionHeaders(context.headers) } }
  }
  return { ...operation, handle }
}

/**
 * The reply to the question that a browser asks before an extension sends its token, which has none;
 * undefined for any other request.
 */
export function preflightReply({ method, headers }: Context): Reply | undefined {
  const asked = headers['access-control-request-method']
  const allowed = extensionHeaders(headers)
  if (method !== 'OPTIONS' || asked === undefined || !('access-control-allow-origin' in allowed)) {
    return undefined
  }
  const uncached = { 'cache-control': 'no-store' }
  return { status: 204, headers: { ...allowed, ...PREFLIGHT, ...uncached }, body: null }
}
