import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'

/** What a worker is told to send until it is told to stop. */
export interface PacedOrder {
  readonly port: number
  readonly connections: number
  readonly perSecond: number
  readonly bytes: number
  readonly secret: string
}

/** What it tells back: after each word from outside, and a last time when all is answered. */
export interface PacedResult {
  /** From the time when a delivery was due until its answer. */
  readonly milliseconds: readonly number[]
  readonly sent: number
  readonly refused: number
  readonly over: boolean
}

const { port, connections, perSecond, bytes, secret } = workerData as PacedOrder
const padding = 'x'.repeat(bytes)
let milliseconds: number[] = []
let sent = 0
let answered = 0
let refused = 0
let stopped = false
const started = performance.now()
const sockets = Array.from({ length: connections }, startConnection)
const timer = setInterval(sendDue, 1)

parentPort?.on('message', (word: 'take' | 'stop') => {
  if (word === 'take') return report(false)
  stopped = true
  clearInterval(timer)
  reportEnd()
})

/** Each connection has one delivery after the other, whether the ones before are answered or not. */
function sendDue(): void {
  const due = Math.floor(((performance.now() - started) / 1_000) * perSecond)
  for (; sent < due; sent++) sockets[sent % connections]?.(sent)
}

function startConnection(): (n: number) => void {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  const dueAt: number[] = []
  let pending = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    pending += chunk
    for (;;) {
      const split = pending.indexOf('\r\n\r\n')
      if (split < 0) return
      const length = Number(/content-length: (\d+)/i.exec(pending.slice(0, split))?.[1] ?? 0)
      if (pending.length < split + 4 + length) return
      if (!pending.startsWith('HTTP/1.1 202')) refused++
      milliseconds.push(performance.now() - (dueAt.shift() ?? 0))
      pending = pending.slice(split + 4 + length)
      answered++
      reportEnd()
    }
  })
  return (n) => {
    dueAt.push(started + ((n + 1) / perSecond) * 1_000)
    const body = JSON.stringify({ n, padding })
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    const head = [
      'POST /webhooks/code_host HTTP/1.1',
      'Host: 127.0.0.1',
      'Content-Type: application/json',
      'X-GitHub-Event: push',
      `X-GitHub-Delivery: paced-${perSecond}-${n}`,
      `X-Hub-Signature-256: sha256=${signature}`,
      `Content-Length: ${body.length}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  }
}

function reportEnd(): void {
  if (stopped && answered === sent) report(true)
}

function report(over: boolean): void {
  parentPort?.postMessage({ milliseconds, sent, refused, over } satisfies PacedResult)
  milliseconds = []
}
