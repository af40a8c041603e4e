import * as Type from '../../kernel/schema.ts'
import type { Database } from '../../db/client.ts'
import { eventQueries as q, type StoredEvent } from '../../db/hooks/log/events.ts'
import { forwarderQueries } from '../../db/hooks/send/forwarders.ts'
import { replayQueries, type Replay } from '../../db/hooks/send/replays.ts'
import {
  EVENT_TABS,
  eventBody,
  eventFragment,
  eventPage,
  type EventView,
} from '../../html/hooks/event.ts'
import { LISTED_REPLAYS } from '../../html/hooks/send/replays/replays.ts'
import { notFound } from '../../kernel/fault.ts'
import { visitor } from '../../kernel/http/endpoint.ts'
import { bytesReply, type Reply } from '../../kernel/http/reply.ts'
import type { View } from '../../kernel/http/view.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import {
  confirmationOf,
  confirmStored,
} from '../../services/hooks/receive/deliveries/subscriptions.ts'
import { compareAnswers, compareEvents } from '../../services/hooks/log/events/compare.ts'
import {
  EventDetail,
  eventDetail,
  findEventStart,
  MAX_PARSED,
  NO_EVENT,
  payloadTree,
  prettyPayload,
  readEventStart,
  textOf,
  unreadable,
} from '../../services/hooks/log/events/detail.ts'
import { outlineOf } from '../../services/hooks/log/events/outline.ts'
import { receiverPath } from '../../services/hooks/receive/providers/providers.ts'
import { REDACTED } from '../../services/hooks/redact.ts'
import { curlCommand, forwardCommand } from '../../services/hooks/send/replays/commands.ts'
import { hasUnsignedType } from '../../services/hooks/receive/schemes/describe.ts'
import { schemeOf } from '../../services/hooks/receive/schemes/schemes.ts'
import { reader } from './access.ts'
import { api, form, page, raw, type HooksRoutes } from './kit.ts'
import { toolsOf } from './receive/providers/view.ts'

/** The menu offers the latest targets of an event: at most `limit`, from its last `among` replays. */
const RECENT_TARGETS = { among: 200, limit: 5 }
/** Forwarders that the menu offers. */
const RECEIVERS = 5

/** The id in a path; 404 for one that no event can have. */
export const EventId = parsed(Type.Integer({ minimum: 1 }), '', (given) => {
  if (/^\d{1,15}$/.test(String(given))) return Number(given)
  throw notFound(NO_EVENT)
})

const params = { id: EventId }
const TAB_FORM = `must be one of ${EVENT_TABS.join(', ')}.`

/** The page of an event (hooks.md section 4), its payload, and the same for programs. */
export const eventEndpoints = [
  page({
    path: '/log/:id',
    params,
    query: Type.Object({
      tab: field(withDefault(Type.Enum([...EVENT_TABS]), 'payload'), TAB_FORM),
      /** `1` for the payload as it was sent alone. */
      raw: withDefault(Type.String(), ''),
      /** The id of an event to compare with. */
      compare: withDefault(Type.String(), ''),
      /** The ids of two attempts whose answers are compared. */
      answer: withDefault(Type.String(), ''),
      other: withDefault(Type.String(), ''),
      /** `1` after a replay without script: its result is said. */
      replayed: withDefault(Type.String(), ''),
    }),
    async answer({ app, params: { id }, query }) {
      const isReplayed = query.replayed === '1'
      const tab = isReplayed || query.answer !== '' ? 'deliveries' : query.tab
      const shown = { tab, isRaw: query.raw === '1', isReplayed }
      const view = await readEvent(app, id, shown)
      if (query.compare !== '') view.compared = await compareWith(app, view.event, query.compare)
      if (query.answer !== '') {
        view.comparedAnswers = compareAttempts(view.replays, query.answer, query.other)
      }
      return { page: () => eventPage(view), fragment: () => eventFragment(view) }
    },
  }),

  form({
    path: '/log/:id/confirm',
    params,
    async answer({ app, actor, params: { id } }) {
      await confirmStored(
        { ...toolsOf(app, actor), ...app.hooks, actor },
        await findStored(app.hooks.db, id),
      )
      const view = await eventView(app, id)
      return { ...view, location: `/log/${id}`, done: ['confirmed', 'the subscription'] }
    },
    refused: ({ app, params: { id } }, confirmation) => eventView(app, id, { confirmation }),
  }),

  raw({
    path: '/log/:id/payload',
    access: visitor,
    params,
    answer: ({ app, params: { id } }) => payloadReply(app.hooks.db, id),
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
    params,
    returns: { description: 'The event', schema: EventDetail },
    answer: async ({ app, params: { id } }) => eventDetail(await findStored(app.hooks.db, id)),
  }),

  raw({
    path: '/api/v1/events/:id/payload',
    access: reader,
    params,
    notes: {
      id: 'getPayload',
      tag: 'Events',
      summary: 'Get the payload of an event, byte for byte, as a download.',
      replies: {
        200: {
          description: 'The bytes',
          schema: Type.String({ format: 'binary' }),
          type: 'application/octet-stream',
        },
      },
    },
    answer: ({ app, params: { id } }) => payloadReply(app.hooks.db, id),
  }),
]

/** The page of an event, and what is below its title. */
export async function eventView(
  app: HooksRoutes,
  id: number,
  changes: Partial<EventView> = {},
): Promise<View> {
  const view = await readEvent(app, id, changes)
  return { page: () => eventPage(view), fragment: () => eventBody(view) }
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

/** What the page of an event shows. */
export async function readEvent(
  { hooks, baseUrl }: HooksRoutes,
  id: number,
  changes: Partial<EventView> = {},
): Promise<EventView> {
  const { event, omittedBytes, isReadingCut, request } = await readEventStart(
    hooks.db,
    id,
    MAX_PARSED,
  )
  const text = textOf(event)
  const isSigned = event.trust_mode === 'signed'
  // Read before the replays: a receiver that has finished meanwhile has its attempt among them.
  const receivers = await forwarderQueries.listReceivers(hooks.db, { event: id, limit: RECEIVERS })
  const [sameBody, replays, recent, neighbours = NO_NEIGHBOURS] = await Promise.all([
    isSigned ? q.findSameBody(hooks.db, { id }) : undefined,
    replayQueries.listReplays(hooks.db, { event: id, limit: LISTED_REPLAYS }),
    replayQueries.listRecentTargets(hooks.db, { ...RECENT_TARGETS, hidden: REDACTED }),
    q.findNeighbours(hooks.db, { id }),
  ])
  const provider = hooks.registry.provider(event.provider)
  const scheme = provider && schemeOf(provider)
  const asked = confirmationOf(provider, event)
  const topics = provider?.scheme_row?.expected?.topics ?? []
  const receiver = baseUrl() + receiverPath(event.provider)
  const payloadUrl = `${baseUrl()}/log/${id}/payload`
  return {
    event,
    request,
    neighbours,
    omittedBytes,
    text,
    unreadable: unreadable(event),
    isReadingCut,
    outline: text === undefined ? undefined : outlineOf(text, event.content_type),
    tab: 'payload',
    isRaw: false,
    tree: payloadTree(event),
    pretty: changes.isRaw === true ? null : prettyPayload(event),
    sameBody: sameBody ?? null,
    hasUnsignedType: isSigned && scheme !== undefined && hasUnsignedType(scheme, event.headers),
    subscription: asked === undefined ? null : { ...asked, isNamed: topics.includes(asked.topic) },
    // An event of a broker has no receiver that it could be sent to again.
    curl: event.trust_mode === 'queue' ? null : curlCommand(event, receiver, payloadUrl),
    defaultTarget: hooks.registry.settings.replay_default_target,
    recentTargets: recent.map(({ target }) => target),
    receivers,
    connected: hooks.forwarders.names(),
    laptop: forwardCommand(event, baseUrl()),
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

/** The answers to two attempts of a list beside each other. */
function compareAttempts(
  replays: readonly Replay[],
  ...ids: readonly [own: string, other: string]
): NonNullable<EventView['comparedAnswers']> {
  const [own, other] = ids.map((id) => replays.find((one) => String(one.id) === id))
  if (typeof own?.answer !== 'string' || typeof other?.answer !== 'string') return 'gone'
  return { own, other, result: compareAnswers(own.answer, other.answer) }
}
