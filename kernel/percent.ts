/** The text behind a percent-encoded one; undefined where a % starts no encoded byte, or the bytes are no text. */
export function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    // URIError: the percent-encoding is broken.
    return undefined
  }
}
