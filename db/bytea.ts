import { isUtf8 } from 'node:buffer'
import type postgres from 'postgres'

/**
 * Bytes as the text of a `bytea`. Text, as most bodies are, goes in the escape format, which is half as
 * long as hex and a quarter cheaper to send. It needs a database in UTF8, else PostgreSQL would
 * convert it: `refuseUnfitServer` refuses any other at the start.
 */
export const BYTEA: postgres.PostgresType<Buffer> = {
  to: 17,
  from: [17],
  serialize: (bytes: Buffer) =>
    isUtf8(bytes) && !bytes.includes(0)
      ? bytes.toString('utf8').replaceAll('\\', '\\\\')
      : `\\x${bytes.toString('hex')}`,
  parse: (text: string) => Buffer.from(text.slice(2), 'hex'),
}
