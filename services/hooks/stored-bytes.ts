import type { NewEvent } from '../../db/hooks/rows.ts'

/** Bytes of what grows with a delivery: its body and its headers. */
export function storedBytes({ body, headers }: NewEvent): number {
  let bytes = body.length
  for (const name in headers) bytes += name.length + Buffer.byteLength(headers[name] ?? '')
  return bytes
}
