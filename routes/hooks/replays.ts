import Type from 'typebox'
import { replayQueries } from '../../db/hooks/replays.ts'
import { eventPage } from '../../html/hooks/event.ts'
import { replaysList } from '../../html/hooks/replays.ts'
import type { View } from '../../kernel/http/view.ts'
import { withDefault } from '../../kernel/validate.ts'
import { form, operator, type HooksRoutes } from './endpoint.ts'
import { eventView, LISTED_REPLAYS, readEventId } from './events.ts'

/** `POST /log/{id}/replay` (decisions.md section 3, Replay). */
export const replayEndpoints = [
  form({
    path: '/log/:id/replay',
    access: operator,
    params: { id: Type.String() },
    /** Absent or empty for the default target. */
    body: Type.Object({ target_url: withDefault(Type.String(), '') }),
    async answer({ app, params, body }) {
      const id = readEventId(params.id)
      const target = body.target_url.trim()
      // A replay that failed is in the list with its reason, like one that was delivered.
      await app.hooks.replay(id, target === '' ? undefined : target)
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
