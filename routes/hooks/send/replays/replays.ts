import * as Type from '../../../../kernel/schema.ts'
import { editPage, editPart } from '../../../../html/hooks/send/replays/edit.ts'
import { field, withDefault } from '../../../../kernel/validate.ts'
import { newForm, type FormState, type View } from '../../../../kernel/http/view.ts'
import { readEventStart } from '../../../../services/hooks/log/events/detail.ts'
import { sendAgain } from '../../../../services/hooks/send/forwarders/forwarders.ts'
import { ForwardRequest } from '../../../../services/hooks/send/forwarders/protocol.ts'
import { MAX_EDITED, replayEvent, Sent } from '../../../../services/hooks/send/replays/replays.ts'
import { replayer } from '../../access.ts'
import { EventId, eventView, readEvent } from '../../event.ts'
import { api, form, page, type HooksRoutes } from '../../kit.ts'

export const target_url = field(
  Type.Optional(
    Type.String({ description: 'Where to; the default target of the settings if absent' }),
  ),
  'must be text.',
)

export const ReplayRequest = Type.Object(
  { target_url },
  { additionalProperties: false, examples: [{ target_url: 'https://example.com/hook' }] },
)

const CONTENT_TYPE_FORM = 'must be at most 255 printable ASCII characters.'
const BODY_FORM = `must be text of at most ${MAX_EDITED} bytes.`

/** What the form of `/log/{id}/edit` sends. No API: a token must not sign what it likes. */
const EditForm = Type.Object({
  content_type: field(withDefault(Type.String(), ''), CONTENT_TYPE_FORM, [
    (text) => /^[\x20-\x7e]{0,255}$/.test(text),
    CONTENT_TYPE_FORM,
  ]),
  payload: field(withDefault(Type.String(), ''), BODY_FORM, [
    (text) => Buffer.byteLength(text) <= MAX_EDITED,
    BODY_FORM,
  ]),
  target_url: withDefault(Type.String(), ''),
})

async function editView(
  app: HooksRoutes,
  id: number,
  changes: { form?: FormState; isReplayed?: boolean } = {},
): Promise<View> {
  const { event, omittedBytes, replays, receivers, defaultTarget } = await readEvent(app, id)
  const isShort = omittedBytes === 0 && event.payload_size <= MAX_EDITED
  const typed = { content_type: event.content_type ?? '', payload: event.payload }
  const view = {
    event,
    replays,
    receivers,
    defaultTarget,
    maxBytes: MAX_EDITED,
    isEditable: isShort && event.payload_encoding === 'utf8',
    form: newForm(EditForm, typed),
    ...changes,
  }
  return { page: () => editPage(view), fragment: () => editPart(view) }
}

/** An event is sent again, as it was stored or edited. */
export const replayEndpoints = [
  form({
    path: '/log/:id/replay',
    params: { id: EventId },
    /** Absent or empty for the default target. */
    body: Type.Object({ target_url: withDefault(Type.String(), '') }),
    async answer({ app, actor, params: { id }, body }) {
      // A replay that failed is in the list with its reason, like one that was delivered.
      await replayEvent({ ...app.hooks, actor }, id, body.target_url.trim() || undefined)
      const view = await eventView(app, id, { tab: 'deliveries', isReplayed: true })
      return { ...view, location: `/log/${id}?replayed=1` }
    },
    refused: ({ app, params: { id } }, sent) => eventView(app, id, { sent }),
  }),

  form({
    path: '/log/:id/forward',
    params: { id: EventId },
    body: Type.Object({ name: ForwardRequest.properties.name }),
    async answer({ app, actor, params: { id }, body }) {
      // Throws 404 for an event that is gone.
      await readEventStart(app.hooks.db, id, 0)
      await sendAgain({ ...app.hooks, actor }, body.name, id)
      const view = await eventView(app, id, { tab: 'deliveries' })
      return { ...view, location: `/log/${id}?tab=deliveries` }
    },
  }),

  page({
    path: '/log/:id/edit',
    params: { id: EventId },
    answer: ({ app, params: { id } }) => editView(app, id),
  }),

  form({
    path: '/log/:id/edit',
    params: { id: EventId },
    body: EditForm,
    limit: 4 * MAX_EDITED,
    async answer({ app, actor, params: { id }, body }) {
      const { target_url, payload, content_type } = body
      const edit = { payload, content_type: content_type.trim() || null }
      await replayEvent({ ...app.hooks, actor }, id, target_url.trim() || undefined, edit)
      const form = newForm(EditForm, { target_url, payload, content_type })
      const view = await editView(app, id, { form, isReplayed: true })
      return { ...view, location: `/log/${id}?replayed=1` }
    },
    refused: ({ app, params: { id } }, form) => editView(app, id, { form }),
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
