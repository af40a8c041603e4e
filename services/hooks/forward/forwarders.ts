import { forwarderQueries as q } from '../../../db/hooks/forwarders.ts'
import type { Channel } from '../../../kernel/http/websocket.ts'
import { unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { repeat } from '../../../kernel/repeat.ts'
import type { ForwardRequest } from './protocol.ts'
import { createSearchSlot } from '../events.ts'
import {
  startSession,
  type ConnectedForwarder,
  type Session,
  type SessionOptions,
} from './session.ts'

/** The forwarders that are connected to `/relay` (decisions.md section 3). */
export interface Forwarders {
  /** Names of the forwarders that are connected to this process. */
  readonly names: readonly string[]
  /**
   * Gives a name to a new connection; closes an older connection of that name, on any instance.
   * Throws 503 when MAX_FORWARDERS are connected or connecting.
   */
  attach(request: ForwardRequest): Promise<ConnectedForwarder>
  /** Serves a forwarder, or ends its connection if MAX_FORWARDERS are connected. */
  open(channel: Channel, forwarder: ConnectedForwarder): void
  /** Ends every connection; resolves when nothing more is stored. */
  close(): Promise<void>
}

const MAX_FORWARDERS = 256
const POLL_MS = 10_000

const NO_ROOM = 'As many forwarders are connected as this process serves; try again shortly.'

/** Starts following the names that any instance gives to new connections. */
export async function openForwarders(
  options: Omit<SessionOptions, 'forwarded' | 'searchSlot'> & { readonly metrics: Metrics },
): Promise<Forwarders> {
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

  /** Ends connections whose name has a newer connection. */
  async function endReplaced(): Promise<void> {
    if (sessions.size === 0) return
    const current = names()
    const newest = await q.listConnections(db, { names: current, limit: current.length })
    for (const { forwarder, replaced } of sessions) {
      const { request, connection } = forwarder
      const row = newest.find(({ name }) => name === request.name)
      if (row !== undefined && row.connection > connection) replaced()
    }
  }
  const checks = repeat(clock, POLL_MS, endReplaced, {
    fails: (error) => log.warn('forwarders not compared', { error: messageOf(error) }),
    works: () => log.info('forwarders are compared again'),
  })
  await db.listen('hooks_forwarders', () => void checks.now())

  return {
    get names() {
      return names()
    },
    async attach(request) {
      if (closing || sessions.size + attaching >= MAX_FORWARDERS) throw unavailable(NO_ROOM, 5)
      const { name, since } = request
      const start = since === null ? null : Math.max(0, since - 1)
      attaching++
      try {
        const attached = await q.attachForwarder(db, { name, start, now: clock.now() })
        return { request, ...attached }
      } finally {
        attaching--
      }
    },
    open(channel, forwarder) {
      // A connection counts only from here: a client may leave between `attach` and `open`.
      if (sessions.size >= MAX_FORWARDERS) return channel.close(1013, NO_ROOM)
      const session = startSession({ ...options, searchSlot, forwarded }, channel, forwarder)
      sessions.add(session)
      void session.over.then(() => sessions.delete(session))
      if (closing) void session.close()
    },
    async close() {
      closing = true
      const checked = checks.stop()
      await Promise.all([...sessions].map((session) => session.close()))
      await checked
    },
  }
}
