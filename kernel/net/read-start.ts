import type { IncomingMessage } from 'node:http'

/**
 * Reads the first `limit` bytes of an answer and drops the connection: the body may be endless. A
 * body that breaks off counts as a short one.
 */
export function readStart(
  response: IncomingMessage,
  limit: number,
  done: (start: Buffer) => void,
): void {
  const chunks: Buffer[] = []
  let size = 0
  response.on('close', () => done(Buffer.concat(chunks).subarray(0, limit)))
  response.on('error', () => undefined)
  if (limit === 0) return void response.destroy()
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    if (size >= limit) response.destroy()
  })
}
