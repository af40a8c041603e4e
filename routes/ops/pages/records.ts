import { listCooldowns } from '../../../db/ops/actions.ts'
import { listEvents } from '../../../db/ops/events.ts'
import { cooldownsPage } from '../../../html/ops/cooldowns.ts'
import { eventsFragment, eventsPage } from '../../../html/ops/events.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { pageOrFragment } from '../../page-answers.ts'
import { filterOf, readList } from '../api/operation.ts'
import type { OpsRoutes } from '../options.ts'
import { pageOf, pageRoute } from './page.ts'

const USUAL = 100
const DAY_MS = 86_400_000

/** `/events` and `/cooldowns` (decisions.md section 5, Dashboard). */
export function recordRoutes({ ops }: OpsRoutes): readonly Route[] {
  const { db } = ops
  return [
    pageRoute({
      ...{ method: 'GET', path: '/events' },
      async answer(context) {
        const asked = readList(context, USUAL)
        if ('status' in asked) return asked
        const [level, service] = [filterOf(asked, 'level'), filterOf(asked, 'service')]
        const filter = { level, service, session: null }
        const found = await listEvents(db, filter, asked.offset, asked.limit + 1)
        const { rows: events, older } = pageOf(found, asked, '/events')
        const view = { events, older, level, service }
        return pageOrFragment(
          context,
          () => eventsPage(view),
          () => eventsFragment(view),
        )
      },
    }),
    pageRoute({
      ...{ method: 'GET', path: '/cooldowns' },
      async answer({ receivedAt }) {
        const since = new Date(receivedAt.getTime() - DAY_MS)
        return htmlReply(cooldownsPage(await listCooldowns(db, since)))
      },
    }),
  ]
}
