import { listAttempts } from '../../db/hooks/attempts.ts'
import { findEvent, findSameBody } from '../../db/hooks/events.ts'
import { eventPage } from '../../html/hooks/event.ts'
import type { ReplayView } from '../../html/hooks/views.ts'
import type { Context } from '../../kernel/http/context.ts'
import { bytesReply, htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import {
  curlCommand,
  prettyPayload,
  READABLE,
  readEventStart,
} from '../../services/hooks/event-detail.ts'
import { contradictedType } from '../../services/hooks/event-fields.ts'
import { receiverPath } from '../../services/hooks/providers.ts'
import { hooksFault, notFound } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** How many attempts an event's page lists. */
export const ATTEMPTS_SHOWN = 50

/** `GET /log/{id}` (hooks.md section 4) and its raw bytes at `/log/{id}/payload`. */
export function eventRoutes(options: HooksRoutes): readonly Route[] {
  /** As a download and as plain bytes, so that a hostile payload is never run as a page of ours. */
  async function payload(context: Context): Promise<Reply> {
    const id = idOf(context)
    const found = id === undefined ? undefined : await findEvent(options.hooks.db, id)
    if (found === undefined) return hooksFault(NO_EVENT, context)
    return bytesReply(found.payload, 'application/octet-stream', {
      'content-disposition': `attachment; filename="event-${found.id}.bin"`,
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
    })
  }

  return [
    {
      method: 'GET',
      path: '/log/:id',
      access: 'guarded',
      handle: (context) => eventReply(options, context, {}),
    },
    { method: 'GET', path: '/log/:id/payload', access: 'guarded', handle: payload },
  ]
}

/** An event's page, with what the form on it came to. */
export async function eventReply(
  options: HooksRoutes,
  context: Context,
  replayed: Partial<Pick<ReplayView, 'done' | 'refused'>>,
  status = 200,
): Promise<Reply> {
  const { hooks, baseUrl } = options
  const id = idOf(context)
  const found = id === undefined ? undefined : await readEventStart(hooks.db, id, READABLE)
  if (found === undefined) return hooksFault(NO_EVENT, context)
  const { event, omittedBytes } = found
  const [sameBody, attempts] = await Promise.all([
    event.trust_mode === 'signed' ? findSameBody(hooks.db, event.id) : undefined,
    listAttempts(hooks.db, event.id, ATTEMPTS_SHOWN),
  ])
  const receiver = baseUrl() + receiverPath(event.provider)
  // What came over a broker has no receiver that it could be sent to again.
  const curl =
    event.trust_mode === 'queue'
      ? null
      : curlCommand(event, receiver, `${baseUrl()}/log/${event.id}/payload`)
  const defaultTarget = hooks.registry.settings.replay_default_target
  const page = eventPage({
    event,
    omittedBytes,
    pretty: prettyPayload(event),
    sameBody: sameBody ?? null,
    contradictedType: contradictedType(event),
    curl,
    replay: { eventId: event.id, defaultTarget, attempts, done: false, refused: null, ...replayed },
  })
  return htmlReply(page, status)
}

/** The id in the path; undefined for one that no event can have. */
export function idOf({ params: { id = '' } }: Context): number | undefined {
  return /^\d{1,15}$/.test(id) ? Number(id) : undefined
}

/** What an id without an event is answered with. */
export const NO_EVENT = notFound('There is no event under this id; retention may have removed it.')
