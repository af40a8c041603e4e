/**
 * Text of so many bytes at most, never cut within a character. Of one that is longer the beginning stays,
 * and `…` says that it is cut; or also so many bytes of its end, and a line in between says it.
 */
export function cutAt(text: string, most: number, end = 0): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= most) return text
  const mark = end === 0 ? '…' : `\n(${bytes.length - most} bytes are cut off)\n`
  const first = characterAt(bytes, most - end - Buffer.byteLength(mark))
  const last = end === 0 ? '' : bytes.toString('utf8', characterAt(bytes, bytes.length - end, 1))
  return `${bytes.toString('utf8', 0, first)}${mark}${last}`
}

/** Where a character begins that is the nearest one before a place, or after it. */
function characterAt(bytes: Buffer, place: number, step: 1 | -1 = -1): number {
  let at = place
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at += step
  return at
}
