import { attachForwarder, listConnections } from '../../db/hooks/forwarders.ts'
import type { Channel } from '../../kernel/http/websocket.ts'
import { messageOf } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { repeat } from '../../kernel/repeat.ts'
import type { RelayRequest } from './relay-request.ts'
import { createSearchSlot } from './search-slot.ts'
import { startSession, type Forwarder, type RelayOptions, type Session } from './relay-session.ts'

/** The server's side of forwarding (decisions.md section 3): who is connected to `/relay`. */
export interface Relay {
  /** Names of the forwarders that are connected to this process. */
  readonly names: readonly string[]
  /**
   * Takes the name for a new connection; one that has it already is closed, on any instance. Undefined
   * when as many forwarders as this process serves are connected, or about to be.
   */
  attach(request: RelayRequest): Promise<Forwarder | undefined>
  /** Serves a forwarder on its open connection, or ends it where others have taken the last place. */
  open(channel: Channel, forwarder: Forwarder): void
  /** Ends every connection; resolves when nothing is written any more. */
  close(): Promise<void>
}

const MAX_FORWARDERS = 256
const POLL_MS = 10_000

/** What a forwarder that has no place is told. */
export const NO_ROOM = 'As many forwarders are connected as this process serves; try again shortly.'

/** Opens the relay and follows who takes a name in other instances. */
export async function openRelay(
  options: Omit<RelayOptions, 'forwarded' | 'searchSlot'> & { readonly metrics: Metrics },
): Promise<Relay> {
  const { db, clock, log, metrics } = options
  const sessions = new Set<Session>()
  const searchSlot = createSearchSlot()
  let attaching = 0
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
    get names() {
      return names()
    },
    async attach(request) {
      if (closing || sessions.size + attaching >= MAX_FORWARDERS) return undefined
      const { name, since } = request
      const start = since === null ? null : Math.max(0, since - 1)
      attaching++
      try {
        return { request, ...(await attachForwarder(db, name, start, clock.now())) }
      } finally {
        attaching--
      }
    },
    open(channel, forwarder) {
      // Between `attach` and here nobody is counted: a client that leaves then must hold no place.
      if (sessions.size >= MAX_FORWARDERS) return channel.close(1013, NO_ROOM)
      const session = startSession({ ...options, searchSlot, forwarded }, channel, forwarder)
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
