import { connect } from 'node:net'
import { threadId, workerData } from 'node:worker_threads'

/** What a flooding client is told. */
export interface FloodOrder {
  readonly port: number
  /** Requests that each connection sends without waiting for answers. */
  readonly pipelined: number
  readonly connections: number
  /** Answers so far, by the first digit of their status. */
  readonly answered: Int32Array
}

const { port, pipelined, connections, answered } = workerData as FloodOrder
let asked = 0
const STATUS_LINE = 'HTTP/1.1 '

for (let n = 0; n < connections; n++) flood()

/** Requests for slugs that nobody has asked for, short enough for all that is suggested. */
function burst(): string {
  let text = ''
  for (let n = 0; n < pipelined; n++) {
    text += `GET /u${threadId}-${(asked++).toString(36)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`
  }
  return text
}

/** Sends a burst, reads its answers, and sends the next; a connection that ends is made again. */
function flood(): void {
  const socket = connect(port, '127.0.0.1')
  let missing = 0

  function send(): void {
    missing = pipelined
    socket.write(burst())
  }
  socket.on('connect', send)
  socket.on('data', (chunk: Buffer) => {
    for (let at = chunk.indexOf(STATUS_LINE); at >= 0; at = chunk.indexOf(STATUS_LINE, at + 9)) {
      const digit = (chunk[at + STATUS_LINE.length] ?? 0) - 48
      Atomics.add(answered, digit >= 0 && digit < answered.length ? digit : 0, 1)
      missing--
    }
    // A status line that two chunks share is not counted: near the end is the end.
    if (missing < pipelined / 100) send()
  })
  socket.on('error', () => undefined)
  socket.on('close', flood)
}
