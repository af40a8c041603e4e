import type { IncomingMessage } from 'node:http'

/** A body as received, or why there is none. */
export type BodyResult =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly reason: 'too-large' | 'aborted' | 'overloaded' }

/** Bytes of bodies that are being read at one time, over all connections of the process. */
export interface BodyBudget {
  used: number
  readonly limit: number
}

/** Whether a body follows the head; without one there is nothing to read, and no event says so. */
export function bringsBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || headers['content-length'] !== undefined
}

/** True where the head says that no byte follows it. */
export function isEmptyBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/**
 * Reads a whole request body and counts while reading, so that a chunked body is bounded as well.
 * Nothing is truncated: over `limit` the bytes are dropped and the result says so.
 * `proceed` sends 100 Continue to a client that waits for it, once the size is known to be acceptable.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  budget: BodyBudget,
  proceed: () => void,
): Promise<BodyResult> {
  if (!bringsBody(request)) return Promise.resolve({ ok: true, bytes: Buffer.alloc(0) })
  if (Number(request.headers['content-length'] ?? 0) > limit) {
    return Promise.resolve({ ok: false, reason: 'too-large' })
  }
  proceed()
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0

    function settle(result: BodyResult): void {
      budget.used -= size
      request.off('data', onData)
      request.off('end', onEnd)
      request.off('close', onClose)
      resolve(result)
    }
    function onData(chunk: Buffer): void {
      size += chunk.length
      budget.used += chunk.length
      if (size > limit) return settle({ ok: false, reason: 'too-large' })
      if (budget.used > budget.limit) return settle({ ok: false, reason: 'overloaded' })
      chunks.push(chunk)
    }
    function onEnd(): void {
      const [only] = chunks
      const bytes = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks, size)
      settle({ ok: true, bytes })
    }
    function onClose(): void {
      settle({ ok: false, reason: 'aborted' })
    }

    if (request.destroyed) return onClose()
    request.on('data', onData)
    request.on('end', onEnd)
    request.on('close', onClose)
  })
}
