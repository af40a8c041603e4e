/**
 * The media type of a `Content-Type` header, in lower case and without parameters; '' without the
 * header.
 */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/**
 * Whether an `If-None-Match` names this entity tag (RFC 9110 section 13.1.2): `*`, or a list with
 * it. Proxies that compress an answer make its tag weak, so weak and strong ones are compared
 * alike.
 */
export function namesTag(header: string | undefined, tag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(/"[^"]*"/g)?.some((named) => named === tag) === true
}

/**
 * Whether a request with this `If-Match` may change what has this strong entity tag (RFC 9110
 * section 13.1.1). Without the header it may. A weak tag matches nothing.
 */
export function ifMatches(header: string | undefined, etag: string): boolean {
  if (header === undefined || header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim() === etag)
}
