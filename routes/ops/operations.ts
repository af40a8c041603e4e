import { Cooldown, operationQueries as q } from '../../db/ops/operations.ts'
import { cooldownsView } from '../../html/ops/operations.ts'
import { listApi, page, type OpsApp } from './endpoint.ts'

const DAY_MS = 86_400_000
const MAX_COOLDOWNS = 1_000

/** Operations of the last 24 hours (ops.md section 4; decisions.md section 5, Dashboard). */
export const operationEndpoints = [
  page({
    path: '/cooldowns',
    answer: async ({ app, now }) => cooldownsView(await listCooldowns(app, now)),
  }),

  listApi('Cooldowns', {
    summary: 'List what was done in the last 24 hours, newest first.',
    row: Cooldown,
    list: ({ app, now }) => listCooldowns(app, now),
  }),
]

function listCooldowns({ ops }: OpsApp, now: Date): Promise<readonly Cooldown[]> {
  const since = new Date(now.getTime() - DAY_MS)
  return q.listCooldowns(ops.db, { since, limit: MAX_COOLDOWNS })
}
