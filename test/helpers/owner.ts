import { randomInt } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { runFolder } from './program.ts'

/** The part of a tap test that a helper needs: whose end ends what the helper started. */
export type Owner = { teardown(end: () => unknown): unknown }

/** A fresh folder that goes away with the test, at the latest with the run. Teardowns run last-registered first. */
export async function temporaryFolder(t: Owner, name = 'data') {
  const folder = await mkdtemp(join(runFolder(), `${name}-`))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/**
 * Ports for servers of tests, which stop and come back on the same one. Below those that systems give to
 * outgoing connections and to listeners on any port: those would take it in between.
 */
const PORTS = { from: 20_000, to: 32_000 }

/** A TCP port that was free a moment ago. */
export async function freePort() {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to)
    const server = createServer()
    const listening = Promise.withResolvers<boolean>()
    server.once('error', () => listening.resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => listening.resolve(true)))
    if (await listening.promise) return port
  }
}
