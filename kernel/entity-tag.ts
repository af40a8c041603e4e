/**
 * Whether an `If-None-Match` names this entity tag (RFC 9110 section 13.1.2): `*`, or a list with it. Proxies that
 * compress an answer make its tag weak, so weak and strong ones are compared alike.
 */
export function namesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(/"[^"]*"/g)?.some((named) => named === tag) === true
}
