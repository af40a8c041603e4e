import Type from 'typebox'
import { eventQueries as q } from '../../db/hooks/events.ts'
import { providerQueries } from '../../db/hooks/providers.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { replayQueries } from '../../db/hooks/replays.ts'
import { eventPage, type EventView, replaysList } from '../../html/hooks/event.ts'
import { logFragment, logPage, rejectionsFragment, rejectionsPage } from '../../html/hooks/log.ts'
import { forbidden, notFound } from '../../kernel/fault.ts'
import { queryOf, wantsFragment, type Context } from '../../kernel/http/context.ts'
import { bytesReply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import type { View } from '../../kernel/http/view.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import {
  curlCommand,
  MAX_PARSED,
  NO_EVENT,
  prettyPayload,
  readEventStart,
} from '../../services/hooks/event-detail.ts'
import { contradictedType } from '../../services/hooks/event-fields.ts'
import {
  eventCursor,
  LogQuery,
  readRejectionCursor,
  readsPayloads,
  rejectionCursor,
} from '../../services/hooks/event-filter.ts'
import { findEvents } from '../../services/hooks/events.ts'
import { replayEvent } from '../../services/hooks/replays.ts'
import { receiverPath } from '../../services/hooks/providers.ts'
import { withDefault } from '../../kernel/validate.ts'
import { anyone } from '../../kernel/http/endpoint.ts'
import { page, form, type HooksRoutes } from './endpoint.ts'

/** Replays that the page of an event lists. */
const LISTED_REPLAYS = 50

/** The log and the pages of its events (hooks.md section 4). */
export const eventEndpoints = [
  page({
    path: '/log',
    access: anyone,
    query: LogQuery,
    async answer({ app, query, context }) {
      if (readsPayloads(query) && !maySearch(context)) throw forbidden(FOREIGN_SEARCH)
      return query.rejected === '1'
        ? rejectionsView(app, query, context)
        : logView(app, query, context)
    },
  }),

  page({
    path: '/log/:id',
    access: anyone,
    params: { id: Type.String() },
    async answer({ app, params }) {
      const view = await eventView(app, readEventId(params.id))
      return { page: () => eventPage(view), fragment: () => eventPage(view) }
    },
  }),

  form({
    path: '/log/:id/replay',
    access: anyone,
    params: { id: Type.String() },
    /** Absent or empty for the default target. */
    body: Type.Object({ target_url: withDefault(Type.String(), '') }),
    async answer({ app, params, body }) {
      const id = readEventId(params.id)
      const target = body.target_url.trim()
      // A replay that failed is in the list with its reason, like one that was delivered.
      await replayEvent(app.hooks, id, target === '' ? undefined : target)
      return replayedView(app, id)
    },
    async refused({ app, params }, { typed, fault }) {
      const view = await eventView(app, readEventId(params.id))
      const refused = { typed: typed['target_url'] ?? '', message: fault.message }
      const shown = { ...view, replay: { ...view.replay, refused } }
      return { page: () => eventPage(shown), fragment: () => eventPage(shown) }
    },
  }),
]

/** `GET /log/{id}/payload`: a download of plain bytes, so that no browser shows it as a page. */
export function payloadRoute({ hooks }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/log/:id/payload',
    access: 'guarded',
    async handle({ params }) {
      const event = await q.findEvent(hooks.db, { id: readEventId(params['id'] ?? '') })
      if (event === undefined) throw notFound(NO_EVENT)
      return bytesReply(event.payload, 'application/octet-stream', {
        'content-disposition': `attachment; filename="event-${event.id}.bin"`,
        'content-security-policy': "default-src 'none'; sandbox",
        'cache-control': 'no-store',
      })
    },
  }
}

/** The id in a path; 404 for one that no event can have. */
function readEventId(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw notFound(NO_EVENT)
}

/** What the page of an event shows. */
async function eventView({ hooks, baseUrl }: HooksRoutes, id: number): Promise<EventView> {
  const { event, omittedBytes } = await readEventStart(hooks.db, id, MAX_PARSED)
  const [sameBody, replays] = await Promise.all([
    event.trust_mode === 'signed' ? q.findSameBody(hooks.db, { id }) : undefined,
    replayQueries.listReplays(hooks.db, { event: id, limit: LISTED_REPLAYS }),
  ])
  const receiver = baseUrl() + receiverPath(event.provider)
  const payloadUrl = `${baseUrl()}/log/${id}/payload`
  const defaultTarget = hooks.registry.settings.replay_default_target
  return {
    event,
    omittedBytes,
    pretty: prettyPayload(event),
    sameBody: sameBody?.id ?? null,
    contradictedType: contradictedType(event),
    // An event of a broker has no receiver that it could be sent to again.
    curl: event.trust_mode === 'queue' ? null : curlCommand(event, receiver, payloadUrl),
    replay: { eventId: id, defaultTarget, replays, done: false, refused: null },
  }
}

async function logView({ hooks }: HooksRoutes, query: LogQuery, context: Context): Promise<View> {
  // Before the events are read: the stream brings those that come in between.
  const position = wantsFragment(context)
    ? 0
    : (await q.streamBounds(hooks.db, { replayed: 0 })).newest
  const { events, next, searchedTo } = await findEvents(hooks.db, hooks.clock, query, context)
  const view = {
    filter: query,
    providers: await providerNames(hooks, context),
    events,
    below: query.cursor !== '',
    searchedTo,
    next: next === null ? null : nextPage(context, eventCursor(next)),
  }
  return { page: () => logPage(view, position), fragment: () => logFragment(view) }
}

async function rejectionsView(
  { hooks }: HooksRoutes,
  query: LogQuery,
  context: Context,
): Promise<View> {
  const rows = await rejectionQueries.listRejections(hooks.db, {
    below: readRejectionCursor(query.cursor),
    provider: query.provider === '' ? null : query.provider,
    limit: query.limit + 1,
  })
  const rejections = rows.slice(0, query.limit)
  const last = rows.length > query.limit ? rejections.at(-1) : undefined
  const view = {
    filter: query,
    providers: await providerNames(hooks, context),
    rejections,
    below: query.cursor !== '',
    next: last === undefined ? null : nextPage(context, rejectionCursor(last)),
  }
  return { page: () => rejectionsPage(view), fragment: () => rejectionsFragment(view) }
}

/** The choices of the filter form, which fragments don't have. */
async function providerNames(
  { db }: HooksRoutes['hooks'],
  context: Context,
): Promise<readonly string[]> {
  if (wantsFragment(context)) return []
  return (await providerQueries.listProviders(db, {})).map(({ name }) => name)
}

/**
 * Whether a search comes from this site, by a link that is followed, or from a program that says
 * so. Over plain http browsers send no `Sec-Fetch-Site`: then a page of this site in `Referer`, or
 * the header of htmx, which no other site can set, must show it.
 */
function maySearch(context: Context): boolean {
  const { headers } = context
  if (headers['sec-fetch-site'] !== undefined) return !isForeignLoad(headers)
  if (wantsFragment(context)) return true
  const { referer = '', host = '' } = headers
  return URL.canParse(referer) && new URL(referer).host === host.toLowerCase()
}

/** The time that a search takes shows whether a text is in a payload. */
const FOREIGN_SEARCH =
  'A page of another site may not search here; search on the log page of this site. ' +
  'A program sends the header HX-Request: true.'

/** The same query, from below a position. */
function nextPage(context: Context, cursor: string): string {
  const query = new URLSearchParams(queryOf(context))
  query.set('cursor', cursor)
  return `/log?${query}`
}

/** The list with the outcome of the newest replay, and the page around it. */
function replayedView(app: HooksRoutes, id: number): View {
  return {
    async page() {
      const view = await eventView(app, id)
      return eventPage({ ...view, replay: { ...view.replay, done: true } })
    },
    async fragment() {
      const list = { event: id, limit: LISTED_REPLAYS }
      const replays = await replayQueries.listReplays(app.hooks.db, list)
      return replaysList({ replays, done: true })
    },
  }
}
