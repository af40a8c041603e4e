import Type from 'typebox'
import type { Database } from '../../../db/client.ts'
import { EventSummary, eventQueries as q, type StoredEvent } from '../../../db/hooks/events.ts'
import { providerQueries } from '../../../db/hooks/providers.ts'
import { rejectionQueries } from '../../../db/hooks/rejections.ts'
import { Replay, replayQueries } from '../../../db/hooks/replays.ts'
import { nullable } from '../../../db/sql-file.ts'
import { eventFragment, eventPage, type EventView } from '../../../html/hooks/events/detail.ts'
import {
  logFragment,
  logPage,
  rejectionsFragment,
  rejectionsPage,
  type ListView,
} from '../../../html/hooks/events/list.ts'
import { replaysList } from '../../../html/hooks/replays.ts'
import { Fault, notFound } from '../../../kernel/fault.ts'
import { queryOf, wantsFragment, type Context } from '../../../kernel/http/context.ts'
import { bytesReply, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import type { View } from '../../../kernel/http/view.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { compareEvents } from '../../../services/hooks/events/compare.ts'
import {
  curlCommand,
  EventDetail,
  eventDetail,
  MAX_PARSED,
  findEventStart,
  NO_EVENT,
  payloadTree,
  prettyPayload,
  readEventStart,
} from '../../../services/hooks/events/detail.ts'
import { contradictedType } from '../../../services/hooks/deliveries/fields.ts'
import {
  cursorAt,
  EventQuery,
  filterOf,
  LogQuery,
  readCursor,
} from '../../../services/hooks/events/filter.ts'
import { findEvents } from '../../../services/hooks/events/events.ts'
import { withPreviews } from '../../../services/hooks/events/previews.ts'
import { replayEvent } from '../../../services/hooks/replays/replays.ts'
import { schemeOf } from '../../../services/hooks/schemes/schemes.ts'
import { receiverPath } from '../../../services/hooks/providers.ts'
import { field, parsed, withDefault } from '../../../kernel/validate.ts'
import { reader, replayer } from '../access.ts'
import { api, page, form, type HooksRoutes } from '../kit.ts'
import { refuseForeignSearch } from './foreign-search.ts'

/** Replays that the page of an event lists. */
const LISTED_REPLAYS = 50
/** Event types that the filter of the log offers. */
const SUGGESTED_TYPES = 200

export const EventList = Type.Object({
  events: Type.Array(EventSummary),
  next_cursor: nullable(Type.String()),
})

export const ReplayRequest = Type.Object(
  {
    target_url: Type.Optional(
      field(
        Type.String({ description: 'Where to; the default target of the settings if absent' }),
        'must be a text',
      ),
    ),
  },
  { additionalProperties: false, examples: [{ target_url: 'https://example.com/hook' }] },
)

/** One time that an event was sent. */
export const Sent = Type.Omit(Replay, ['id', 'answer'])

const EventId = parsed(Type.Integer({ minimum: 1 }), '', (given) => readEventId(String(given)))

/** Any bytes, in the words of OpenAPI. */
const BINARY = {
  schema: Type.String({ format: 'binary' }),
  type: 'application/octet-stream',
} as const

/** The log and the pages of its events (hooks.md section 4). */
export const eventEndpoints = [
  page({
    path: '/log',
    query: LogQuery,
    async answer({ app, query, context }) {
      refuseForeignSearch(query, context)
      return query.rejected === '1'
        ? rejectionsView(app, query, context)
        : logView(app, query, context)
    },
  }),

  page({
    path: '/log/:id',
    params: { id: Type.String() },
    query: Type.Object({
      /** `1` for the payload as it was sent alone. */
      raw: withDefault(Type.String(), ''),
      /** The id of an event to compare with. */
      compare: withDefault(Type.String(), ''),
      /** `1` after a replay without script: its result is said. */
      replayed: withDefault(Type.String(), ''),
    }),
    async answer({ app, params, query: { raw, compare, replayed } }) {
      const shown = { isRaw: raw === '1', isReplayed: replayed === '1' }
      const view = await readEvent(app, readEventId(params.id), shown)
      if (compare !== '') view.compared = await compareWith(app, view.event, compare)
      return { page: () => eventPage(view), fragment: () => eventFragment(view) }
    },
  }),

  form({
    path: '/log/:id/replay',
    params: { id: Type.String() },
    /** Absent or empty for the default target. */
    body: Type.Object({ target_url: withDefault(Type.String(), '') }),
    async answer({ app, actor, params, body }) {
      const id = readEventId(params.id)
      const target = body.target_url.trim()
      // A replay that failed is in the list with its reason, like one that was delivered.
      await replayEvent({ ...app.hooks, actor }, id, target === '' ? undefined : target)
      const view = await readEvent(app, id, { isReplayed: true })
      return {
        page: () => eventPage(view),
        fragment: () => replaysList(view),
        location: `/log/${id}?replayed=1`,
      }
    },
    async refused({ app, params }, refused) {
      const view = await readEvent(app, readEventId(params.id), { refused })
      return { page: () => eventPage(view) }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/events',
    access: reader,
    id: 'listEvents',
    tag: 'Events',
    summary: 'List events, newest first, without their payloads.',
    description:
      'Go on with next_cursor as cursor; it is null on the last page. With text, json, header or ' +
      'verified a call looks through events for about two seconds: its page may then have few ' +
      'events or none, and a next_cursor all the same. Without a token a search by text, json ' +
      'or header needs HX-Request: true.',
    query: EventQuery,
    returns: { description: 'A page of events', schema: EventList },
    async answer({ app: { hooks }, caller, query, context }) {
      refuseForeignSearch(query, context, caller)
      const { events, next_cursor } = await findEvents(hooks.db, hooks.clock, query, context)
      return { events, next_cursor }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/events/:id',
    access: reader,
    id: 'getEvent',
    tag: 'Events',
    summary: 'Get an event with its headers and its payload.',
    description:
      'Values of secret headers are redacted. A payload that is not UTF-8 is in base64.',
    params: { id: EventId },
    returns: { description: 'The event', schema: EventDetail },
    answer: async ({ app, params: { id } }) => eventDetail(await findStored(app.hooks.db, id)),
  }),

  api({
    method: 'POST',
    path: '/api/v1/events/:id/replay',
    access: replayer,
    id: 'replayEvent',
    tag: 'Events',
    summary: 'Send an event to a target again.',
    description:
      'The stored bytes, signed again where the provider signs. Private and local addresses are ' +
      'refused unless an operator has allowed them.',
    params: { id: EventId },
    body: ReplayRequest,
    returns: { description: 'What became of it, as the page of the event shows it', schema: Sent },
    refuses: [422],
    answer: ({ app, actor, params: { id }, body }) =>
      replayEvent({ ...app.hooks, actor }, id, body.target_url),
  }),
]

/** `GET /api/v1/events/{id}/payload`. */
export function payloadOperation(app: HooksRoutes): Operation {
  return {
    method: 'GET',
    path: '/api/v1/events/:id/payload',
    access: reader.guard,
    id: 'getPayload',
    tag: 'Events',
    summary: 'Get the payload of an event, byte for byte, as a download.',
    needsToken: reader.needsToken,
    params: { id: EventId },
    replies: { 200: { description: 'The bytes', ...BINARY } },
    refusals: [400, 401, 403, 404, 503],
    async handle(context) {
      await reader.identify(app, context)
      return payloadReply(app.hooks.db, readEventId(context.params['id'] ?? ''))
    },
  }
}

/** `GET /log/{id}/payload`: a link of the event's page. */
export function payloadRoute({ hooks }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/log/:id/payload',
    access: 'private',
    handle: ({ params }) => payloadReply(hooks.db, readEventId(params['id'] ?? '')),
  }
}

/** A download of plain bytes, so that no browser shows it as a page. */
async function payloadReply(db: Database, id: number): Promise<Reply> {
  const { payload } = await findStored(db, id)
  return bytesReply(payload, 'application/octet-stream', {
    'content-disposition': `attachment; filename="event-${id}.bin"`,
    'content-security-policy': "default-src 'none'; sandbox",
    'cache-control': 'no-store',
  })
}

async function findStored(db: Database, id: number): Promise<StoredEvent> {
  const event = await q.findEvent(db, { id })
  if (event !== undefined) return event
  throw notFound(NO_EVENT)
}

/** The id in a path; 404 for one that no event can have. */
function readEventId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw notFound(NO_EVENT)
}

/** What the page of an event shows. */
async function readEvent(
  { hooks, baseUrl }: HooksRoutes,
  id: number,
  changes: Partial<EventView> = {},
): Promise<EventView> {
  const { event, omittedBytes, request } = await readEventStart(hooks.db, id, MAX_PARSED)
  const [sameBody, replays, neighbours = NO_NEIGHBOURS] = await Promise.all([
    event.trust_mode === 'signed' ? q.findSameBody(hooks.db, { id }) : undefined,
    replayQueries.listReplays(hooks.db, { event: id, limit: LISTED_REPLAYS }),
    q.findNeighbours(hooks.db, { id }),
  ])
  const provider = hooks.registry.provider(event.provider)
  const receiver = baseUrl() + receiverPath(event.provider)
  const payloadUrl = `${baseUrl()}/log/${id}/payload`
  return {
    event,
    request,
    neighbours,
    omittedBytes,
    isRaw: false,
    tree: payloadTree(event),
    pretty: changes.isRaw === true ? null : prettyPayload(event),
    sameBody: sameBody?.id ?? null,
    contradictedType: contradictedType(event, provider && schemeOf(provider)),
    // An event of a broker has no receiver that it could be sent to again.
    curl: event.trust_mode === 'queue' ? null : curlCommand(event, receiver, payloadUrl),
    defaultTarget: hooks.registry.settings.replay_default_target,
    replays,
    ...changes,
  }
}

/** Of an event that retention removed meanwhile. */
const NO_NEIGHBOURS = {
  previous: null,
  next: null,
  previous_of_provider: null,
  next_of_provider: null,
}

/** An event beside another one, which may not be there. */
async function compareWith(
  { hooks }: HooksRoutes,
  event: EventDetail,
  typed: string,
): Promise<NonNullable<EventView['compared']>> {
  const id = /^\d{1,15}$/.test(typed.trim()) ? Number(typed) : 0
  const other = await findEventStart(hooks.db, id, MAX_PARSED)
  return { typed, result: other && compareEvents(event, other.event) }
}

async function logView(app: HooksRoutes, query: LogQuery, context: Context): Promise<View> {
  const { db, clock } = app.hooks
  // Before the events are read: the stream brings those that come in between. A fragment is for a
  // page that knows from its stream what the rows can't miss.
  const newest = wantsFragment(context)
    ? query.above
    : (await q.streamBounds(db, { replayed: 0 })).newest
  const { events, next_cursor, searchedTo } = await findEvents(db, clock, query, context)
  const view = {
    events: await withPreviews(db, events),
    position: Math.max(newest, events[0]?.id ?? 0),
    open: query.open,
    searchedTo,
    ...(await readList(db, query, context, next_cursor)),
  }
  return {
    page: async () => logPage(view, await readOpened(app, query.open)),
    fragment: () => logFragment(view),
  }
}

/** The event beside the log; undefined when there is no such event. */
async function readOpened(app: HooksRoutes, id: number): Promise<EventView | undefined> {
  return id === 0 ? undefined : readEvent(app, id).catch(noneWhenGone)
}

function noneWhenGone(error: unknown): undefined {
  if (!(error instanceof Fault) || error.status !== 404) throw error
}

async function rejectionsView(
  { hooks: { db } }: HooksRoutes,
  query: LogQuery,
  context: Context,
): Promise<View> {
  const rows = await rejectionQueries.listRejections(db, {
    below: readCursor(query.cursor),
    provider: query.provider === '' ? null : query.provider,
    limit: query.limit + 1,
  })
  const rejections = rows.slice(0, query.limit)
  const last = rows.length > query.limit ? rejections.at(-1) : undefined
  const cursor = last === undefined ? null : cursorAt(last.id)
  const view = { rejections, ...(await readList(db, query, context, cursor)) }
  return { page: () => rejectionsPage(view), fragment: () => rejectionsFragment(view) }
}

/** What both lists show beside their rows; only whole pages have the choices of the filter. */
async function readList(
  db: Database,
  filter: LogQuery,
  context: Context,
  cursor: string | null,
): Promise<ListView> {
  const providers = wantsFragment(context) ? [] : await providerQueries.listProviders(db, {})
  const wanted = { provider: filterOf(filter).provider, limit: SUGGESTED_TYPES }
  const isWhole = filter.cursor === '' && filter.above === 0 && filter.rejected !== '1'
  const types = isWhole ? await q.listTypes(db, wanted) : []
  return {
    filter,
    providers: providers.map(({ name }) => name),
    types: types.map(({ event_type }) => event_type),
    below: filter.cursor !== '',
    next: cursor === null ? null : nextPage(context, cursor),
  }
}

/** The same query, from below a position. */
function nextPage(context: Context, cursor: string): string {
  const query = new URLSearchParams(queryOf(context))
  query.delete('above')
  query.set('cursor', cursor)
  return `/log?${query}`
}
