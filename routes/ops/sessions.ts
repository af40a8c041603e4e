import Type from 'typebox'
import { eventQueries } from '../../db/ops/events.ts'
import { Session, sessionQueries as q, type FoundSession } from '../../db/ops/sessions.ts'
import { nullable } from '../../db/sql-file.ts'
import {
  sessionHead,
  sessionPage,
  sessionsFragment,
  sessionsPage,
  type HeadView,
  type StopView,
} from '../../html/ops/sessions.ts'
import { found, Fault, unavailable } from '../../kernel/fault.ts'
import { queryOf } from '../../kernel/http/context.ts'
import { anyone, newForm } from '../../kernel/http/endpoint.ts'
import type { Route } from '../../kernel/http/router.ts'
import { STREAM_HEADERS } from '../../kernel/http/sse.ts'
import { parsed, withDefault } from '../../kernel/validate.ts'
import { MAX_SEQ } from '../../services/ops/sessions/stream.ts'
import { Prompt } from '../../services/ops/sessions/prompt.ts'
import {
  api,
  form,
  idOf,
  listApi,
  page,
  paging,
  readPage,
  type OpsApp,
  opsFault,
  started,
} from './endpoint.ts'

/** ops.md section 2, detail of a session. */
export const SessionDetail = Type.Object({
  ...Session.properties,
  parent_session: Type.Optional(nullable(Session)),
  child_sessions: Type.Array(Session),
  chain_cost: Type.Number({ description: 'Of the whole escalation chain, in US dollars' }),
})

const params = { id: idOf('session') }
const SessionsQuery = Type.Object(paging(50))
/** The body of a form without fields. */
const NoFields = Type.Object({})
/** Lines of output, and events, on a page. */
const MAX_LINES = 500
const MAX_EVENTS = 100
const MAX_CHAIN = 100

/**
 * Sessions (ops.md section 4; decisions.md section 5, Dashboard). Their stream is a route of its
 * own.
 */
export const sessionEndpoints = [
  page({
    path: '/sessions',
    access: anyone,
    query: SessionsQuery,
    async answer({ app: { ops }, query }) {
      const { rows, older } = await readPage('/sessions', query, (asked) =>
        q.listSessions(ops.db, asked),
      )
      return {
        page: () => sessionsPage(rows, older),
        fragment: () => sessionsFragment(rows, older),
      }
    },
  }),

  listApi('Sessions', {
    summary: 'List sessions, newest first.',
    row: Session,
    query: SessionsQuery,
    list: ({ app: { ops }, query }) => q.listSessions(ops.db, query),
  }),

  page({
    path: '/sessions/:id',
    access: anyone,
    params,
    query: Type.Object({
      before: parsed(withDefault(Type.Integer(), MAX_SEQ), 'must be the number of a line', (text) =>
        /^\d{1,10}$/.test(String(text)) ? Math.min(Number(text), MAX_SEQ) : undefined,
      ),
    }),
    async answer({ app, params: { id }, query: { before } }) {
      return sessionView(app, await findSession(app, id), { form: STOP_FORM }, before)
    },
  }),

  api({
    ...{ method: 'GET', path: '/api/v1/sessions/:id', access: anyone },
    id: 'getSession',
    tag: 'Sessions',
    summary: 'Get a session with its escalation chain.',
    params,
    returns: { description: 'The session', schema: SessionDetail },
    async answer({ app: { ops }, params: { id } }) {
      const session = found(await q.findSession(ops.db, { id }), 'session')
      const parentId = session.parent_session_id
      const [parent, child_sessions] = await Promise.all([
        parentId === null ? undefined : q.findSession(ops.db, { id: parentId }),
        q.listChildren(ops.db, { id, limit: MAX_CHAIN }),
      ])
      const parent_session = parent === undefined ? null : publicSession(parent)
      const { chain_cost } = session
      return { ...publicSession(session), parent_session, child_sessions, chain_cost }
    },
  }),

  api({
    ...{ method: 'POST', path: '/api/v1/sessions/trigger', access: anyone },
    id: 'triggerSession',
    tag: 'Sessions',
    summary: 'Start a session at tier 1.',
    body: Type.Object(
      { prompt: Prompt },
      { examples: [{ prompt: 'The shop has been slow since noon: find out why.' }] },
    ),
    returns: { status: 201, description: 'The session, which runs now', schema: Session },
    refuses: [409],
    answer: async ({ app: { ops }, body: { prompt } }) =>
      started(await ops.sessions.start({ tier: 1, trigger: 'api', prompt })),
  }),

  form({
    path: '/sessions/:id/stop',
    access: anyone,
    params,
    body: NoFields,
    async answer({ app, params: { id } }) {
      const isAsked = await app.ops.sessions.stop(id)
      const session = await findSession(app, id)
      if (!isAsked) throw new Fault(409, 'CONFLICT', 'the session does not run')
      const fragment = async () =>
        sessionHead(await headView(app, session, { form: STOP_FORM, isAsked }))
      return { location: `/sessions/${id}`, fragment }
    },
    async refused({ app, params: { id } }, form) {
      return sessionView(app, await findSession(app, id), { form })
    },
  }),
]

const STOP_FORM = newForm(NoFields)

/**
 * `GET /sessions/{id}/stream` (decisions.md section 5, Output): `line` events with their numbers as
 * ids, then `done`. Clients resume by `Last-Event-ID` or `?last_event_id=`.
 */
export function sessionStream({ ops }: OpsApp): Route {
  return {
    method: 'GET',
    path: '/sessions/:id/stream',
    access: 'guarded',
    async handle(context) {
      const id = Number(/^\d+$/.exec(context.params['id'] ?? '')?.[0] ?? 0)
      const exists = Number.isSafeInteger(id) && (await q.findStatus(ops.db, { id })) !== undefined
      if (!exists) return opsFault(new Fault(404, 'NOT_FOUND', 'session not found'), context)
      if (!ops.lines.hasRoom) return opsFault(NO_ROOM, context)
      const given = context.headers['last-event-id'] ?? queryOf(context).get('last_event_id')
      // An id that is not a line's number belongs to a client that has nothing yet.
      const known = typeof given === 'string' && /^\d{1,10}$/.test(given) ? Number(given) : 0
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body: (sink) => ops.lines.connect(sink, id, Math.min(known, MAX_SEQ)),
      }
    },
  }
}

const NO_ROOM = unavailable(
  'As many streams are open as this process serves; try again shortly.',
  5,
)

async function findSession({ ops }: OpsApp, id: number): Promise<FoundSession> {
  return found(await q.findSession(ops.db, { id }), 'session')
}

/** A session without what only its page shows. */
function publicSession(session: FoundSession): Session {
  const { summary: _summary, marker: _marker, chain_cost: _cost, ...shown } = session
  return shown
}

async function headView(
  { ops: { db } }: OpsApp,
  session: FoundSession,
  stop: StopView,
): Promise<HeadView> {
  const { id } = session
  const filter = { level: null, service: null, session: id }
  const [events, chain] = await Promise.all([
    eventQueries.listEvents(db, { ...filter, offset: 0, limit: MAX_EVENTS }),
    q.listChain(db, { id, limit: MAX_CHAIN }),
  ])
  return { session, stop, events, chain }
}

function sessionView(app: OpsApp, session: FoundSession, stop: StopView, before = MAX_SEQ) {
  return {
    async page() {
      const [head, lines] = await Promise.all([
        headView(app, session, stop),
        q.listLinesBefore(app.ops.db, { session: session.id, before, limit: MAX_LINES }),
      ])
      return sessionPage({ ...head, lines: lines.toReversed(), atEnd: before === MAX_SEQ })
    },
    fragment: async () => sessionHead(await headView(app, session, stop)),
  }
}
