import { attachForwarder, listConnections } from '../../db/hooks/forwarders.ts'
import type { Channel } from '../../kernel/channel.ts'
import { messageOf } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { repeat } from '../../kernel/repeat.ts'
import type { RelayRequest } from './relay-request.ts'
import { startSession, type Forwarder, type RelayOptions, type Session } from './relay-session.ts'

/** The server's side of forwarding (decisions.md section 3): who is connected to `/relay`. */
export interface Relay {
  /** False when as many forwarders as this process serves are connected. */
  readonly hasRoom: boolean
  /** Names of the forwarders that are connected to this process. */
  readonly names: readonly string[]
  /** Takes the name for a new connection; whoever had it is sent away, in every instance. */
  attach(request: RelayRequest): Promise<Forwarder>
  /** Serves a forwarder on its open connection. */
  open(channel: Channel, forwarder: Forwarder): void
  /** Ends every connection; resolves when nothing is written any more. */
  close(): Promise<void>
}

const FORWARDERS = 256
const POLL_MS = 10_000

/** Opens the relay and follows who takes a name in other instances. */
export async function openRelay(
  options: Omit<RelayOptions, 'forwarded'> & { readonly metrics: Metrics },
): Promise<Relay> {
  const { db, clock, log, metrics } = options
  const sessions = new Set<Session>()
  let closing = false
  const forwarded = metrics.counter('gatehouse_hooks_forwarded', 'Attempts to forward an event.')
  metrics.gauge('gatehouse_hooks_forwarders', 'Connected forwarders.', () => [[{}, sessions.size]])

  function names(): readonly string[] {
    return [...new Set([...sessions].map(({ forwarder }) => forwarder.request.name))]
  }

  /** Ends the connections whose name has a newer one. */
  async function look(): Promise<void> {
    if (sessions.size === 0) return
    const newest = await listConnections(db, names())
    for (const { forwarder, replaced } of sessions) {
      const { request, connection } = forwarder
      const row = newest.find(({ name }) => name === request.name)
      if (row !== undefined && row.connection > connection) replaced()
    }
  }
  const looks = repeat(clock, POLL_MS, look, {
    fails: (error) => log.warn('forwarders not compared', { error: messageOf(error) }),
    works: () => log.info('forwarders are compared again'),
  })
  await db.listen('hooks_forwarders', () => void looks.now())

  return {
    get hasRoom() {
      return !closing && sessions.size < FORWARDERS
    },
    get names() {
      return names()
    },
    async attach(request) {
      const { name, since } = request
      const start = since === null ? null : Math.max(0, since - 1)
      return { request, ...(await attachForwarder(db, name, start, clock.now())) }
    },
    open(channel, forwarder) {
      const session = startSession({ ...options, forwarded }, channel, forwarder)
      sessions.add(session)
      void session.over.then(() => sessions.delete(session))
      if (closing) void session.close()
    },
    async close() {
      closing = true
      const looked = looks.stop()
      await Promise.all([...sessions].map((session) => session.close()))
      await looked
    },
  }
}
