import * as Type from '../../../kernel/schema.ts'
import type { Database } from '../../../db/client.ts'
import { eventQueries } from '../../../db/ops/events.ts'
import { operationQueries } from '../../../db/ops/agent/operations.ts'
import {
  Session,
  sessionQueries as q,
  type ChainSession,
  type FoundSession,
} from '../../../db/ops/agent/sessions.ts'
import { nullable } from '../../../db/sql-file.ts'
import { MAX_COUNT } from '../../../html/parts.ts'
import { sessionsView } from '../../../html/ops/agent/sessions/list.ts'
import {
  callView,
  sessionHead,
  sessionView,
  stopView,
  type ShownSession,
} from '../../../html/ops/agent/sessions/sessions.ts'
import { DAY_FORM, readDay, readZone, ZONE_FORM } from '../../../kernel/days.ts'
import { found, Fault, unavailable } from '../../../kernel/fault.ts'
import { STREAM_HEADERS } from '../../../kernel/http/sse.ts'
import { field, parsed, withDefault } from '../../../kernel/validate.ts'
import { readCall, readStory } from '../../../services/ops/agent/sessions/story.ts'
import { RANGES, rangeOf } from '../../../services/ops/agent/sessions/ranges.ts'
import { MAX_SEQ } from '../../../services/ops/agent/sessions/stream.ts'
import { Prompt } from '../../../services/ops/agent/sessions/prompt.ts'
import { started } from '../faults.ts'
import { api, form, idOf, page, raw, type OpsApp } from '../kit.ts'
import { Filter, listApi, paging, pagingByTime, readPageAfter, type Key } from '../paging.ts'

/** ops.md section 2, detail of a session. */
export const SessionDetail = Type.Object({
  ...Session.properties,
  parent_session: Type.Optional(nullable(Session)),
  child_sessions: Type.Array(Session),
  chain_cost: Type.Number({ description: 'Of the whole escalation chain, in US dollars' }),
})

const params = { id: idOf('session') }
const SessionsQuery = Type.Object(paging(50))
const When = Type.Enum([...RANGES])
const Day = parsed(
  withDefault(Type.Unsafe<string | null>({ type: 'string', format: 'date' }), null),
  `must be ${DAY_FORM}`,
  (given) => (given === '' ? null : readDay(String(given))?.toString()),
)
/** The zone whose days are meant; empty for UTC. */
export const Zone = field(withDefault(Type.String(), ''), `must be ${ZONE_FORM}`, [
  (zone) => readZone(zone) !== undefined,
  `must be ${ZONE_FORM}`,
])
const FilterQuery = Type.Object({
  ...pagingByTime(50),
  status: Filter,
  trigger: Filter,
  when: parsed(withDefault(nullable(When), null), `must be one of ${RANGES.join(', ')}`, (given) =>
    given === '' ? null : RANGES.find((range) => range === given),
  ),
  from: Day,
  to: Day,
  zone: Zone,
})
/** Lines of output, and events, on a page. */
const MAX_LINES = 500
const EVENTS = { level: null, service: null, offset: 0, limit: 100 }
const MAX_CHAIN = 100

/** The number of a line; where it is left out, the newest lines are shown, or all are sent. */
function lineNumberOr(number: number) {
  return parsed(
    withDefault(Type.Integer({ minimum: 0 }), number),
    'must be the number of a line',
    lineNumber,
  )
}

const CallNumber = Type.Integer({ minimum: 1, maximum: MAX_SEQ })

/** Sessions (ops.md section 4; decisions.md section 5, Dashboard), and their output as it comes. */
export const sessionEndpoints = [
  page({
    path: '/sessions',
    query: FilterQuery,
    async answer({ app: { ops }, query, now }) {
      const { status, trigger, when, from, to, zone } = query
      const asked = { status, trigger, ...rangeOf(query, now) }
      const [{ rows, older }, sums] = await Promise.all([
        readPageAfter('/sessions', query, keyOf, ({ after: { rank, id }, limit }) =>
          q.pageChains(ops.db, { ...asked, at: new Date(rank), id, limit }),
        ),
        q.sumSessions(ops.db, { ...asked, limit: MAX_COUNT + 1 }),
      ])
      const chains = await readChains(
        ops.db,
        rows.map(({ chain }) => chain),
      )
      const shown = { status, trigger, when, from, to, zone }
      return sessionsView({ rows: chains, older, ...shown, sums })
    },
  }),

  listApi('Sessions', {
    summary: 'List sessions, newest first.',
    row: Session,
    query: SessionsQuery,
    list: ({ app: { ops }, query }) =>
      q.listSessions(ops.db, { status: null, trigger: null, ...query }),
  }),

  page({
    path: '/sessions/:id',
    params,
    query: Type.Object({ before: lineNumberOr(MAX_SEQ), lines: Filter }),
    answer: async ({ app, params, query }) =>
      sessionView(await readSession(app, params.id, query)),
  }),

  page({
    path: '/sessions/:id/calls/:call',
    params: { ...params, call: CallNumber },
    async answer({ app, params: { id, call } }) {
      const session = await findSession(app, id)
      return callView(session, found(await readCall(app.ops.db, id, call), 'tool call'))
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/sessions/:id',
    id: 'getSession',
    tag: 'Sessions',
    summary: 'Get a session with its escalation chain.',
    params,
    returns: { description: 'The session', schema: SessionDetail },
    async answer({ app: { ops }, params: { id } }) {
      const session = await findSession({ ops }, id)
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
    method: 'POST',
    path: '/api/v1/sessions/trigger',
    id: 'triggerSession',
    tag: 'Sessions',
    summary: 'Start a session at tier 1.',
    body: Type.Object(
      { prompt: Prompt },
      { examples: [{ prompt: 'The shop has been slow since noon: find out why.' }] },
    ),
    returns: { status: 201, description: 'The session, which runs now', schema: Session },
    refuses: [409],
    answer: async ({ app: { ops }, actor, body: { prompt } }) =>
      started(await ops.sessions.start({ tier: 1, trigger: 'api', prompt, actor })),
  }),

  form({
    path: '/sessions/:id/stop',
    params,
    body: Type.Object({}),
    async answer({ app, actor, params: { id } }) {
      const isAsked = await app.ops.sessions.stop(id, actor)
      if (!isAsked) {
        await findSession(app, id)
        throw new Fault(409, 'CONFLICT', 'the session does not run')
      }
      const shown = await readSession(app, id)
      const fragment = () => sessionHead({ ...shown, isAsked })
      return { location: `/sessions/${id}`, fragment, done: ['stopped', `session ${id}`] }
    },
    refused: async ({ app, params }, { fault }) =>
      stopView({ ...(await readSession(app, params.id)), fault }),
  }),

  /**
   * The stream of decisions.md section 5, Output: `line` events with their numbers as ids, then
   * `done`. Clients resume by `Last-Event-ID` or `?last_event_id=`.
   */
  raw({
    path: '/sessions/:id/stream',
    params,
    query: Type.Object({ last_event_id: lineNumberOr(0) }),
    find: async ({ app: { ops }, params: { id } }) =>
      found(await q.findStatus(ops.db, { id }), 'session'),
    answer({ app: { ops }, params: { id }, query, context }) {
      if (!ops.lines.hasRoom) {
        throw unavailable('As many streams are open as this process serves; try again shortly.', 5)
      }
      // A client whose header is not the number of a line has no lines yet.
      const header = context.headers['last-event-id']
      const known = header === undefined ? query.last_event_id : (lineNumber(header) ?? 0)
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body: (sink) => ops.lines.connect(sink, id, known),
      }
    },
  }),
]

function keyOf({ started_at, id }: Pick<Session, 'started_at' | 'id'>): Key {
  return { rank: started_at.getTime(), id }
}

/** The sessions of each chain, oldest first; the chains in the order given. */
async function readChains(
  db: Database,
  chains: readonly number[],
): Promise<readonly (readonly ChainSession[])[]> {
  const members = await q.listMembers(db, { chains, limit: chains.length * MAX_CHAIN })
  const byChain = Map.groupBy(members, ({ chain }) => chain)
  return chains.map((chain) => byChain.get(chain) ?? []).filter(({ length }) => length > 0)
}

function lineNumber(text: unknown): number | undefined {
  return /^\d{1,10}$/.test(String(text)) ? Math.min(Number(text), MAX_SEQ) : undefined
}

async function findSession({ ops }: Pick<OpsApp, 'ops'>, id: number): Promise<FoundSession> {
  return found(await q.findSession(ops.db, { id }), 'session')
}

/** A session without what only its page shows. */
function publicSession(session: FoundSession): Session {
  const {
    summary: _summary,
    tool_calls: _calls,
    marker: _marker,
    chain_cost: _cost,
    ...shown
  } = session
  return shown
}

/** Which part of the output is shown: all of it as a story, or lines, the newest or older ones. */
interface Asked {
  before?: number
  lines?: string | null
}

async function readSession(
  app: OpsApp,
  id: number,
  { before = MAX_SEQ, lines = null }: Asked = {},
): Promise<ShownSession> {
  const { db } = app.ops
  const session = await findSession(app, id)
  const atEnd = before === MAX_SEQ
  const isStory = session.status !== 'running' && atEnd && lines === null
  const [alert, events, chain, record, output] = await Promise.all([
    q.findAlertOf(db, { session: id }),
    eventQueries.listEvents(db, { ...EVENTS, session: id }),
    q.listChain(db, { id, limit: MAX_CHAIN }),
    operationQueries.findRecord(db, { session: id }),
    isStory ? readStory(db, session) : readLines(app, id, before),
  ])
  return { session, alert, events, chain, record, output }
}

async function readLines({ ops }: OpsApp, id: number, before: number) {
  const lines = await q.listLinesBefore(ops.db, { session: id, before, limit: MAX_LINES })
  return { lines: lines.toReversed(), atEnd: before === MAX_SEQ }
}
