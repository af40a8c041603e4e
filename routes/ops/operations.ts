import { Cooldown } from '../../db/ops/operations.ts'
import { cooldownsView } from '../../html/ops/operations.ts'
import { listCooldowns, readCooldowns } from '../../services/ops/operations/cooldowns.ts'
import { page } from './kit.ts'
import { listApi } from './paging.ts'

/** Operations and their limits (ops.md section 4; decisions.md section 5, Dashboard). */
export const operationEndpoints = [
  page({
    path: '/cooldowns',
    answer: async ({ app: { ops }, now }) => cooldownsView(await readCooldowns(ops, now)),
  }),

  listApi('Cooldowns', {
    summary: 'List what was done in the last 24 hours, newest first.',
    row: Cooldown,
    list: ({ app: { ops }, now }) => listCooldowns(ops.db, now),
  }),
]
