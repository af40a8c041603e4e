import { connect } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** What a thread of stream clients is told. */
export interface StreamOrder {
  readonly port: number
  readonly path: string
  readonly clients: number
  /** Byte that stands once in each event's frame and nowhere else: it can't be cut in two. */
  readonly mark: number
  /** When each event was sent, in `hrtime` milliseconds, which all threads share. */
  readonly sentAt: Float64Array
  /** How many frames came 0, 1, 2 and so on tenths of a millisecond after their event was sent. */
  readonly delays: Int32Array
}

/** What it tells: that all clients are connected, or that all have the event of this number. */
export type StreamNews = { readonly connected: true } | { readonly complete: number }

const { port, path, clients, mark, sentAt, delays } = workerData as StreamOrder
/** How many clients have each event. */
const receipts = new Int32Array(sentAt.length)
/** One for all: nothing of what was read is kept. */
const buffer = Buffer.alloc(256 * 1024)
let connected = 0

for (let n = 0; n < clients; n++) openClient()

/** Raw sockets without a parser: they take as little as they can of the machine that the server runs on. */
function openClient(): void {
  let begun = false
  let events = 0
  function callback(length: number): boolean {
    const now = Number(process.hrtime.bigint()) / 1e6
    if (!begun) {
      begun = true
      if (++connected === clients) tell({ connected: true })
    }
    const bytes = buffer.subarray(0, length)
    for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at + 1)) {
      const event = events++
      const tenths = Math.floor((now - (sentAt[event] ?? 0)) * 10)
      const bucket = Math.min(delays.length - 1, Math.max(0, tenths))
      delays[bucket] = (delays[bucket] ?? 0) + 1
      const count = (receipts[event] ?? 0) + 1
      receipts[event] = count
      if (count === clients) tell({ complete: event })
    }
    return true
  }
  const socket = connect({ port, host: '127.0.0.1', onread: { buffer, callback } })
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
  socket.on('close', () => {
    throw new Error(`a stream ended after ${events} events`)
  })
}

function tell(news: StreamNews): void {
  parentPort?.postMessage(news)
}
