import { hash } from 'node:crypto'

/** SHA-256 in lower-case hex. */
export function sha256Hex(data: string | Buffer): string {
  return hash('sha256', data, 'hex')
}

/** The longest text that a sender may put into one of our columns. */
const LONGEST = 255

/** A sender's text as a column can hold it: well-formed, without control characters, bounded. */
export function cleanText(value: unknown): string | null {
  if (typeof value !== 'string') return null
  // Made well-formed last: the cut may fall between the two halves of a character, which jsonb refuses.
  const text = value
    .replace(/\p{Cc}/gu, '')
    .slice(0, LONGEST)
    .toWellFormed()
  return text === '' ? null : text
}

/** A delivery id; one that is too long to be stored is represented by its hash, so it stays unique. */
export function cleanId(value: unknown): string | null {
  const text = cleanText(value)
  return text !== null && text !== value
    ? `sha256:${sha256Hex(String(value).toWellFormed())}`
    : text
}
