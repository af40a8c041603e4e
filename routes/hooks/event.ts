import { findEvent, findSameBody } from '../../db/hooks/events.ts'
import type { StoredEvent } from '../../db/hooks/rows.ts'
import { eventPage } from '../../html/hooks/event.ts'
import type { Context } from '../../kernel/context.ts'
import { bytesReply, htmlReply, type Reply } from '../../kernel/reply.ts'
import type { Route } from '../../kernel/router.ts'
import { curlCommand, eventDetail, prettyPayload } from '../../services/hooks/event-detail.ts'
import { receiverPath } from '../../services/hooks/provider-status.ts'
import { hooksFault, notFound } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /log/{id}` (hooks.md section 4) and its raw bytes at `/log/{id}/payload`. */
export function eventRoutes({ hooks, baseUrl }: HooksRoutes): readonly Route[] {
  async function find(context: Context): Promise<StoredEvent | Reply> {
    const id = context.params['id'] ?? ''
    const event = /^\d{1,15}$/.test(id) ? await findEvent(hooks.db, Number(id)) : undefined
    return (
      event ??
      hooksFault(
        notFound('There is no event under this id; retention may have removed it.'),
        context,
      )
    )
  }

  async function page(context: Context): Promise<Reply> {
    const found = await find(context)
    if ('body' in found) return found
    const event = eventDetail(found)
    const sameBody =
      event.trust_mode === 'signed' ? await findSameBody(hooks.db, event.id) : undefined
    const receiver = baseUrl() + receiverPath(event.provider)
    // What came over a broker has no receiver that it could be sent to again.
    const curl =
      event.trust_mode === 'queue'
        ? null
        : curlCommand(event, receiver, `${baseUrl()}/log/${event.id}/payload`)
    return htmlReply(
      eventPage({ event, pretty: prettyPayload(event), sameBody: sameBody ?? null, curl }),
    )
  }

  /** As a download and as plain bytes, so that a hostile payload is never run as a page of ours. */
  async function payload(context: Context): Promise<Reply> {
    const found = await find(context)
    if ('body' in found) return found
    return bytesReply(found.payload, 'application/octet-stream', {
      'content-disposition': `attachment; filename="event-${found.id}.bin"`,
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
    })
  }

  return [
    { method: 'GET', path: '/log/:id', access: 'guarded', handle: page },
    { method: 'GET', path: '/log/:id/payload', access: 'guarded', handle: payload },
  ]
}
