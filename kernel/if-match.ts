/**
 * Whether a request with this `If-Match` may change what has this strong entity tag (RFC 9110 section
 * 13.1.1). Without the header it may. A weak tag matches nothing.
 */
export function ifMatches(header: string | undefined, etag: string): boolean {
  if (header === undefined || header.trim() === '*') return true
  return header.split(',').some((tag) => tag.trim() === etag)
}
