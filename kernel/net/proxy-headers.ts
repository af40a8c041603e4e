import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'

/** The parts of a request that show a proxy. */
export interface ProxiedRequest {
  readonly headers: IncomingHttpHeaders
  readonly httpVersion: string
}

/** True for a header that proxies set for the server behind them; the name is in lower case. */
export function isProxyHeader(name: string): boolean {
  return /^(forwarded|via|x-forwarded-.*|x-real-ip|true-client-ip|cf-.*|remote-.*)$/.test(name)
}

/**
 * What shows that a proxy passed a request on; undefined if nothing does. Browsers and today's programs
 * send none of it. HTTP/1.0 is what nginx and others speak to a server unless they are told otherwise.
 */
export function signOfProxy(
  { headers, httpVersion }: ProxiedRequest,
  userHeader: string,
): string | undefined {
  if (httpVersion === '1.0') return 'HTTP/1.0'
  return Object.keys(headers).find((name) => name === userHeader || isProxyHeader(name))
}

/** The user named by a proxy, empty for nobody; undefined for bytes that are not UTF-8. */
export function namedUser(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value !== 'string') return ''
  // Node reads headers as Latin-1, which keeps each byte.
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8').trim() : undefined
}
