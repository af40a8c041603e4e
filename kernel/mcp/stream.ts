import type { Clock } from '../time.ts'
import type { Reply, Sink } from '../http/reply.ts'
import { encodeFrame, KEEP_ALIVE, STREAM_HEADERS } from '../http/sse.ts'
import type { Envelope } from './json-rpc.ts'
import type { Call } from './server.ts'

export interface StreamOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** The client's token for progress, when it asked for progress. */
  readonly progressToken: unknown
}

const KEEP_ALIVE_MS = 15_000

/**
 * Answers one request as an event stream that ends with its response. A client that goes away has
 * cancelled the request; until then comments keep proxies from closing a quiet connection.
 */
export function streamAnswer(
  { clock, signal, progressToken }: StreamOptions,
  work: (call: Pick<Call, 'gone' | 'progress'>) => Promise<Envelope>,
): Reply {
  return {
    status: 200,
    headers: STREAM_HEADERS,
    body(sink) {
      const closed = new AbortController()
      const stop = clock.every(KEEP_ALIVE_MS, () => sink.write(KEEP_ALIVE))
      sink.onClose(() => {
        stop()
        closed.abort()
      })
      void work({
        gone: () => AbortSignal.any([signal, closed.signal]),
        progress(progress, total, message) {
          if (typeof progressToken !== 'string' && typeof progressToken !== 'number') return
          const params = { progressToken, progress, total, message }
          const notice = { jsonrpc: '2.0', method: 'notifications/progress', params }
          send(sink, [JSON.stringify(notice)])
        },
      }).then(
        (response) => {
          send(sink, response)
          sink.end()
        },
        // Work answers with a value whatever happens; a throw here is a bug, and the client must see an end.
        () => sink.destroy(),
      )
    },
  }
}

function send(sink: Sink, message: Envelope): void {
  const data = Buffer.concat(message.map((piece) => Buffer.from(piece))).toString('utf8')
  sink.write(encodeFrame({ event: 'message', data }))
}
