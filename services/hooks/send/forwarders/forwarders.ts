import type { Database } from '../../../../db/client.ts'
import { forwarderQueries as q } from '../../../../db/hooks/send/forwarders.ts'
import type { Channel } from '../../../../kernel/http/websocket.ts'
import { Fault, notFound, unavailable } from '../../../../kernel/fault.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import { makeChange, type ChangeTools } from '../../../audit.ts'
import type { ForwardRequest } from './protocol.ts'
import { createSearchSlot } from '../../log/events/events.ts'
import {
  startSession,
  type ConnectedForwarder,
  type Session,
  type SessionParts,
} from './session.ts'

/** The forwarders that are connected to `/relay` (decisions.md section 3). */
export type Forwarders = Awaited<ReturnType<typeof openForwarders>>

const MAX_FORWARDERS = 256
const POLL_MS = 10_000

const NO_ROOM = 'As many forwarders are connected as this process serves; try again shortly.'

/** Starts following the names that any instance gives to new connections. */
export async function openForwarders(options: SessionParts & { metrics: Metrics }) {
  const { db, clock, log, metrics } = options
  const sessions = new Set<Session>()
  const searchSlot = createSearchSlot()
  let attaching = 0
  let closing = false
  const forwarded = metrics.counter('gatehouse_hooks_forwarded', 'Attempts to forward an event.')
  metrics.gauge('gatehouse_hooks_forwarders', 'Connected forwarders.', () => [[{}, sessions.size]])

  const reports = reportsTo(log, 'forwarders not compared', 'forwarders are compared again')
  const checks = repeat(clock, POLL_MS, 'forwarders', () => compareNewest(db, sessions), reports)
  await db.listen('hooks_forwarders', () => void checks.now())

  return {
    /** Names of the forwarders that are connected to this process. */
    names: () => namesOf(sessions),
    /**
     * Gives a name to a new connection; closes an older connection of that name, on any instance.
     * Throws 503 when MAX_FORWARDERS are connected or connecting.
     */
    async attach(request: ForwardRequest): Promise<ConnectedForwarder> {
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
    /** Serves a forwarder, or ends its connection if MAX_FORWARDERS are connected. */
    open(channel: Channel, forwarder: ConnectedForwarder): void {
      // A connection counts only from here: a client may leave between `attach` and `open`.
      if (sessions.size >= MAX_FORWARDERS) return channel.close(1013, NO_ROOM)
      const session = startSession({ ...options, searchSlot, forwarded, channel, forwarder })
      sessions.add(session)
      void session.over.then(() => sessions.delete(session))
      if (closing) void session.close()
    },
    /** Ends every connection; resolves when nothing more is stored. */
    async close(): Promise<void> {
      closing = true
      const checked = checks.stop()
      await Promise.all([...sessions].map((session) => session.close()))
      await checked
    },
  }
}

const NO_FORWARDER = 'There is no forwarder under this name.'

/**
 * Has a forwarder get an event once more: at once if it is connected, to whatever instance, else
 * when it connects. Its position stays.
 */
export async function sendAgain(tools: ChangeTools, name: string, event: number): Promise<void> {
  const subject = `event ${event} to ${name}`
  const note = { service: 'hooks', action: 'event replay', subject } as const
  await makeChange(tools, note, async (tx) => {
    if ((await q.sendAgain(tx, { name, event })) !== undefined) return
    const [known] = await q.listConnections(tx, { names: [name], limit: 1 })
    if (known === undefined) throw notFound(NO_FORWARDER)
    throw new Fault(409, 'CONFLICT', `100 events wait for ${name} already; connect it first.`)
  })
}

/** Forgets a forwarder and its position. */
export async function forgetForwarder(tools: ChangeTools, name: string): Promise<void> {
  const note = { service: 'hooks', action: 'forwarder forget', subject: name } as const
  await makeChange(tools, note, async (tx) => {
    if ((await q.removeForwarder(tx, { name })) !== undefined) return
    throw notFound(NO_FORWARDER)
  })
}

function namesOf(sessions: ReadonlySet<Session>): readonly string[] {
  return [...new Set([...sessions].map(({ forwarder }) => forwarder.request.name))]
}

/** Ends connections whose name has a newer connection; the others hear what they get again. */
async function compareNewest(db: Database, sessions: ReadonlySet<Session>): Promise<void> {
  if (sessions.size === 0) return
  const names = namesOf(sessions)
  const newest = await q.listConnections(db, { names, limit: names.length })
  for (const { forwarder, replaced, sendAgain: send } of sessions) {
    const { request, connection } = forwarder
    const row = newest.find(({ name }) => name === request.name)
    if (row === undefined) continue
    if (row.connection > connection) replaced()
    else send(row.again)
  }
}
