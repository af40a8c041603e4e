import type { ServerResponse } from 'node:http'
import type { Sink } from './reply.ts'

/** The socket side of a streaming reply; `kernel/http/write-reply.ts` has sent the head already. */
export function createSink(response: ServerResponse): Sink {
  return {
    write(chunk) {
      if (!response.writableEnded && !response.destroyed) response.write(chunk)
    },
    get unsent() {
      return response.writableLength
    },
    get closed() {
      return response.writableEnded || response.destroyed
    },
    drained: () => drained(response),
    end(chunk) {
      if (!response.writableEnded) response.end(chunk)
    },
    destroy() {
      response.destroy()
    },
    onClose(callback) {
      response.once('close', callback)
    },
  }
}

/** Resolves when a response takes more again, or its client is gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (!response.writableNeedDrain || response.destroyed) return resolve()
    // One of the two may never come: neither listener stays.
    function settle(): void {
      response.off('drain', settle)
      response.off('close', settle)
      resolve()
    }
    response.on('drain', settle)
    response.on('close', settle)
  })
}
