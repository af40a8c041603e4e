import { parseJson } from './json.ts'

/** Opaque text of a keyset position; made only by `encodeCursor`. */
export function encodeCursor(position: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** The position in a cursor; undefined for a text that `encodeCursor` did not make. */
export function decodeCursor(text: string): readonly unknown[] | undefined {
  if (!/^[A-Za-z0-9_-]{1,2048}$/.test(text)) return undefined
  const value = parseJson(Buffer.from(text, 'base64url').toString('utf8'))
  // Other letters can decode to the same position.
  return Array.isArray(value) && encodeCursor(value) === text ? value : undefined
}
