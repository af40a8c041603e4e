/** The text behind a percent-encoded one; undefined where a % starts no encoded byte, or the bytes are no text. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // URIError: the percent-encoding is broken.
    return undefined
  }
}

/** A segment of a path, decoded; undefined where it is broken or has a NUL, which can't be stored. */
export function decodeSegment(segment: string): string | undefined {
  if (!segment.includes('%')) return segment
  const text = percentDecoded(segment)
  return text?.includes('\0') ? undefined : text
}
