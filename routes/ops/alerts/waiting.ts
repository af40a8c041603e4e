import * as Type from '../../../kernel/schema.ts'
import {
  waitingFragment,
  waitingView,
  type WaitingView,
} from '../../../html/ops/alerts/waiting.ts'
import { INSTANT_FORM, readInstant } from '../../../kernel/time.ts'
import { parsed, withDefault } from '../../../kernel/validate.ts'
import { readHealth, type Health } from '../../../services/ops/watch/checks/health.ts'
import { markSeen, readWaiting } from '../../../services/ops/alerts/waiting.ts'
import { form, page, type OpsApp } from '../kit.ts'

const PATH = '/waiting'
const MAX_ITEMS = 100
/** On the dashboard. */
export const FIRST_ITEMS = 5

const Until = parsed(
  Type.Unsafe<Date>({ type: 'string', format: 'date-time' }),
  `must be ${INSTANT_FORM}`,
  readInstant,
)

const Limit = withDefault(Type.Integer({ minimum: 1 }), MAX_ITEMS)

/** What waits for a person. */
export const waitingEndpoints = [
  page({
    path: PATH,
    query: Type.Object({ limit: Limit }),
    async answer({ app, query: { limit }, now }) {
      const health = await readHealth(app.ops, now)
      return waitingView(await listWaiting(app, health, now, limit))
    },
  }),

  form({
    path: `${PATH}/seen`,
    body: Type.Object({ until: Until, limit: Limit }),
    async answer({ app, actor, body: { until, limit }, now }) {
      // Nobody has seen what is still to come.
      await markSeen({ ...app.ops, actor }, new Date(Math.min(until.getTime(), now.getTime())))
      const fragment = async () => {
        const health = await readHealth(app.ops, now)
        return waitingFragment(await listWaiting(app, health, now, limit))
      }
      const location = limit < MAX_ITEMS ? '/' : PATH
      return { location, fragment, done: ['marked', 'as seen'] }
    },
  }),
]

/** Reads at most `limit` things that wait. */
export async function listWaiting(
  { ops }: OpsApp,
  health: Health,
  now: Date,
  limit: number,
): Promise<WaitingView> {
  const isWhole = limit >= MAX_ITEMS
  return {
    waiting: await readWaiting(ops.db, health, now, Math.min(limit, MAX_ITEMS)),
    path: isWhole ? PATH : `${PATH}?limit=${limit}`,
    limit,
    all: isWhole ? undefined : PATH,
  }
}
