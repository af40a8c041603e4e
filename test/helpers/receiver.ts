import { createServer } from 'node:http'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Owner } from './owner.ts'

/** A request as a receiver got it, read whole. */
export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
}

/** Answers a request, or leaves it unanswered. */
export type Answer = (
  request: Received,
  response: ServerResponse<IncomingMessage>,
) => void | Promise<void>

/** A stranger's HTTP server on loopback: what it got, and how often it was connected to. */
export type Receiver = {
  /** `http://127.0.0.1:PORT`. */
  readonly url: string
  readonly port: number
  readonly received: readonly Received[]
  /** Connections accepted so far, also those on which nothing was sent. */
  connections(): number
}

/** Starts a receiver that answers 204 unless `answer` does something else; it ends with the test. */
export async function startReceiver(
  t: Owner,
  answer: Answer = (_, response) => void response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Received[] = []
  let connections = 0
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers, rawHeaders } = request
      const got = { method, path: url, headers, rawHeaders, body: Buffer.concat(chunks) }
      received.push(got)
      void answer(got, response)
    })
  })
  server.on('connection', () => (connections += 1))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, received, connections: () => connections }
}
