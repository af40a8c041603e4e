import Type from 'typebox'
import { eventPage } from '../../../html/hooks/events/detail.ts'
import { replaysList } from '../../../html/hooks/replays/replays.ts'
import { field, withDefault } from '../../../kernel/validate.ts'
import { replayEvent, Sent } from '../../../services/hooks/replays/replays.ts'
import { replayer } from '../access.ts'
import { EventId, readEvent } from '../events/detail.ts'
import { api, form } from '../kit.ts'

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

/** An event is sent again. */
export const replayEndpoints = [
  form({
    path: '/log/:id/replay',
    params: { id: EventId },
    /** Absent or empty for the default target. */
    body: Type.Object({ target_url: withDefault(Type.String(), '') }),
    async answer({ app, actor, params: { id }, body }) {
      // A replay that failed is in the list with its reason, like one that was delivered.
      await replayEvent({ ...app.hooks, actor }, id, body.target_url.trim() || undefined)
      const view = await readEvent(app, id, { isReplayed: true })
      return {
        page: () => eventPage(view),
        fragment: () => replaysList(view),
        location: `/log/${id}?replayed=1`,
      }
    },
    async refused({ app, params: { id } }, refused) {
      const view = await readEvent(app, id, { refused })
      return { page: () => eventPage(view) }
    },
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
