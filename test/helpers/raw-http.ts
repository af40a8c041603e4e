import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { transcript } from './transcript.ts'

/** What came back on a raw connection; `closed` is false when the limit ended the exchange. */
export type RawResult = { text: string; bytes: Buffer; closed: boolean }

/** `until` ends the exchange early; `timeoutMs` always does, after 5 s when absent. */
export type RawOptions = { host?: string; timeoutMs?: number; until?: (text: string) => boolean }

type Piece = string | Uint8Array

/**
 * Writes bytes as they are, for HTTP that no client would send, and collects the answer until the
 * server closes. Each piece of an array travels in a packet of its own.
 */
export async function rawExchange(
  port: number,
  content: Piece | readonly Piece[],
  { host = '127.0.0.1', timeoutMs = 5_000, until = () => false }: RawOptions = {},
): Promise<RawResult> {
  const chunks: Buffer[] = []
  const done = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, noDelay: true })
  const timer = setTimeout(() => done.resolve(false), timeoutMs)
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (until(Buffer.concat(chunks).toString('latin1'))) done.resolve(false)
  })
  socket.on('close', () => done.resolve(true))
  // A reset is one way for a server to refuse; what it said before is what counts.
  socket.on('error', () => undefined)
  socket.on('connect', async () => {
    for (const piece of isPieces(content) ? content : [content]) {
      if (socket.writable) socket.write(piece)
      await pause(5)
    }
  })
  const closed = await done.promise
  clearTimeout(timer)
  socket.destroy()
  const bytes = Buffer.concat(chunks)
  transcript('http', bytes, 'raw')
  return { bytes, text: bytes.toString('utf8'), closed }
}

function isPieces(content: Piece | readonly Piece[]): content is readonly Piece[] {
  return Array.isArray(content)
}
