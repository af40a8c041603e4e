import type { Batch } from './protocol.ts'
import { eachMessage, join, message, readString, Type } from './protocol.ts'
import type { Effect } from './statements.ts'
import { inspectStatement } from './statements.ts'

/** A batch that is ready to run, and what running it does to the client's channels. */
export interface Request extends Batch {
  effects: Effect[]
}

/** The prepared statements of one connection, by name, with what executing them does. */
export type Statements = Map<string, Effect | undefined>

/** Readies a client's batch: notes its prepared statements, replaces what must not run. */
export function readRequest(batch: Batch, statements: Statements): Request {
  const { buffer, byteOffset, byteLength } = batch.bytes
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  const effects: Effect[] = []
  const parts: Buffer[] = []
  let copied = 0
  const replace = (start: number, end: number, replacement: Buffer): void => {
    parts.push(bytes.subarray(copied, start), replacement)
    copied = end
  }
  eachMessage(bytes, (type, start, end) => {
    if (type === Type.query) {
      const effect = inspectStatement(readString(bytes, start + 5).text)
      if (effect !== undefined) effects.push(effect)
      if (effect?.text !== undefined) replace(start, end, message(type, effect.text, '\0'))
    } else if (type === Type.parse) {
      const name = readString(bytes, start + 5)
      const query = readString(bytes, name.next)
      const effect = inspectStatement(query.text)
      statements.set(name.text, effect)
      if (effect?.text !== undefined) {
        const types = bytes.subarray(query.next, end)
        replace(start, end, message(type, name.text, '\0', effect.text, '\0', types))
      }
    } else if (type === Type.bind) {
      // A prepared LISTEN is executed again without its text.
      const effect = statements.get(readString(bytes, readString(bytes, start + 5).next).text)
      if (effect !== undefined) effects.push(effect)
    } else if (type === Type.close && bytes[start + 5] === STATEMENT) {
      statements.delete(readString(bytes, start + 6).text)
    }
  })
  if (parts.length === 0) return { ...batch, effects }
  return { bytes: join([...parts, bytes.subarray(copied)]), end: batch.end, effects }
}

/** The messages that free a gone connection's named statements in the shared session. */
export function closeStatements(statements: Statements): Buffer[] {
  const names = [...statements.keys()].filter((name) => name !== '')
  return names.map((name) => message(Type.close, 'S', name, '\0'))
}

const STATEMENT = 'S'.charCodeAt(0)
