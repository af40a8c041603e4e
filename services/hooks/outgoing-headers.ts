import { isProxyHeader } from '../../kernel/net/identity.ts'
import { isSensitiveName, REDACTED } from './redact.ts'

/** Headers of one connection: true of no other request. */
const OF_ONE_CONNECTION =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings|host|content-length|expect)$/

/** True for a header that another connection may carry as well, and that is not of the way to us. */
export function isRepeatable(name: string): boolean {
  return !OF_ONE_CONNECTION.test(name) && !isProxyHeader(name)
}

/**
 * The stored headers with which an event is sent on: the sender's own (event type, delivery id, …)
 * without those of its connection, and without credentials, whose values were never stored.
 */
export function outgoingHeaders(
  stored: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const named = (stored['connection'] ?? '').split(',').map((name) => name.trim().toLowerCase())
  const kept = Object.entries(stored).filter(
    ([name, value]) =>
      isRepeatable(name) &&
      !named.includes(name) &&
      !isSensitiveName(name) &&
      !value.includes(REDACTED),
  )
  return Object.fromEntries(kept)
}
