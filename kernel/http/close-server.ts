import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer } from 'node:net'
import type { Duplex } from 'node:stream'

/** How long a connection without a request stays open: one may be on its way. */
const LAST_REQUESTS_MS = 500
const LOOK_MS = 50
/** Under load such a moment comes within a few milliseconds. */
const QUIET_MS = 0.2
const QUIET_WITHIN_MS = 100

export interface ServerToClose {
  readonly server: Server
  /** Answers that are given and have not left yet. */
  readonly leaving: ReadonlySet<ServerResponse>
  /** Connections that are no longer Node's: of WebSockets. */
  readonly upgraded: ReadonlySet<Duplex>
}

/**
 * Stops accepting, answers what was accepted, and cuts what is left after `graceMs`. Whoever has
 * connected is answered: Node's own `close` resets connections whose request is on its way, and cuts
 * an answer off that a slow client has not taken yet. A socket that systemd passed lives on without
 * us, and keeps whoever connects for the next process.
 */
export async function closeServer(
  { server, leaving, upgraded }: ServerToClose,
  graceMs: number,
): Promise<void> {
  await quietMoment(server)
  const closed = new Promise<void>((resolve) =>
    // http.Server's close would end idle connections at once.
    NetServer.prototype.close.call(server, () => resolve()),
  )
  const cut = setTimeout(() => {
    server.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }, graceMs)
  // What has arrived is read before this: it runs after the sockets have been looked at.
  const closeIdle = (): unknown =>
    setImmediate(() => leaving.size === 0 && server.closeIdleConnections())
  let looking: NodeJS.Timeout | undefined
  const wait = setTimeout(() => (looking = setInterval(closeIdle, LOOK_MS)), LAST_REQUESTS_MS)
  await closed
  for (const timer of [cut, wait, looking]) clearTimeout(timer)
}

/**
 * Settles right behind a turn of the event loop that was short and in which nobody has connected: those
 * who connect between the last look and the end of a socket of our own are reset with its queue.
 */
async function quietMoment(server: Server): Promise<void> {
  let connected = false
  const note = (): unknown => (connected = true)
  server.on('connection', note)
  const started = performance.now()
  let now = started
  for (let turn = QUIET_MS; connected || turn >= QUIET_MS;) {
    connected = false
    await new Promise((resolve) => setImmediate(resolve))
    turn = performance.now() - now
    now += turn
    if (now - started > QUIET_WITHIN_MS) break
  }
  server.off('connection', note)
}
