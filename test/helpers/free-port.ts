import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Ports for servers of tests, which stop and come back on the same one. Below those that systems give to
 * outgoing connections and to listeners on any port: those would take it in between.
 */
const PORTS = { from: 20_000, to: 32_000 }

/** A TCP port that was free a moment ago. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to)
    const server = createServer()
    const listening = Promise.withResolvers<boolean>()
    server.once('error', () => listening.resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => listening.resolve(true)))
    if (await listening.promise) return port
  }
}
