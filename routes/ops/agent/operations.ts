import { ActionSummary } from '../../../db/ops/agent/operations.ts'
import { operationsView } from '../../../html/ops/agent/operations.ts'
import { listActions, readLimits } from '../../../services/ops/agent/operations/limits.ts'
import { page } from '../kit.ts'
import { listApi } from '../paging.ts'

/** Operations and their limits (ops.md section 4; decisions.md section 5, Dashboard). */
export const operationEndpoints = [
  page({
    path: '/cooldowns',
    answer: async ({ app: { ops }, now }) => operationsView(await readLimits(ops, now)),
  }),

  listApi('Cooldowns', {
    summary: 'List what was done in the last 24 hours, newest first.',
    row: ActionSummary,
    list: ({ app: { ops }, now }) => listActions(ops.db, now),
  }),
]
