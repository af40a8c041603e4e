/** Opaque text of a keyset position; made only by `encodeCursor`. */
export function encodeCursor(position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** The position in a cursor, or undefined when the text is none of ours. */
export function decodeCursor(text: string): readonly unknown[] | undefined {
  if (!/^[A-Za-z0-9_-]{1,2048}$/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    // The same position in other letters is none of ours, either.
    return Array.isArray(value) && encodeCursor(value) === text ? value : undefined
  } catch {
    // JSON.parse throws on anything that we did not encode.
    return undefined
  }
}
