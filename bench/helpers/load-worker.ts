import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** What a worker is told to send, and what it tells back. */
export interface LoadOrder {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** Each time one of them, at random: the text before and after the place where a random id goes. */
  readonly requests: readonly RequestText[]
  readonly expect: string
}

export interface RequestText {
  readonly head: string
  readonly tail: string
}

export interface LoadResult {
  readonly answered: number
  readonly refused: number
  readonly milliseconds: readonly number[]
}

const order = workerData as LoadOrder
const milliseconds: number[] = []
let refused = 0
let open = order.connections
const end = performance.now() + order.seconds * 1000

for (let c = 0; c < order.connections; c++) startConnection()

/** One connection that sends its next request when the answer to the last one is complete. */
function startConnection(): void {
  const socket = connect(order.port, '127.0.0.1')
  socket.setNoDelay(true)
  let sentAt = 0
  let pending = ''

  function send(): void {
    sentAt = performance.now()
    if (sentAt >= end) {
      socket.end()
      open--
      if (open === 0)
        parentPort?.postMessage({
          answered: milliseconds.length,
          refused,
          milliseconds,
        } satisfies LoadResult)
      return
    }
    const one = Math.floor(Math.random() * order.requests.length)
    const { head, tail } = order.requests[one] ?? { head: '', tail: '' }
    socket.write(`${head}${randomUUID()}${tail}`)
  }

  socket.on('connect', send)
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1')
    const split = pending.indexOf('\r\n\r\n')
    if (split < 0) return
    const length = Number(/content-length: (\d+)/i.exec(pending)?.[1] ?? 0)
    if (pending.length < split + 4 + length) return
    if (!pending.startsWith(order.expect)) refused++
    milliseconds.push(performance.now() - sentAt)
    pending = ''
    send()
  })
  socket.on('error', (error) => {
    throw error
  })
}
