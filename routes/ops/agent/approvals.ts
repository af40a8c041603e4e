import * as Type from '../../../kernel/schema.ts'
import { Approval, approvalQueries as q } from '../../../db/ops/agent/approvals.ts'
import { approvalsView } from '../../../html/ops/agent/approvals.ts'
import { found } from '../../../kernel/fault.ts'
import { newForm, type FormState } from '../../../kernel/http/view.ts'
import { decideApproval, Decision } from '../../../services/ops/agent/approvals/approvals.ts'
import { readLimits } from '../../../services/ops/agent/operations/limits.ts'
import { commandText } from '../../../services/ops/agent/tools/programs.ts'
import { outsideSessions } from '../access.ts'
import { action, idOf, page, type OpsApp } from '../kit.ts'
import {
  LATEST,
  listApi,
  paging,
  pagingByTime,
  pathOf,
  readPageAfter,
  type Key,
} from '../paging.ts'

const PATH = '/approvals'
const params = { id: idOf('approval') }
/** More than wait at a time: each has an operation of its own. */
const MAX_PENDING = 100
const HistoryQuery = Type.Object(pagingByTime(100))
const NEWEST = { limit: 100, after: LATEST }

/** Operations that wait for a person, and what became of them (decisions.md section 7). */
export const approvalEndpoints = [
  page({
    path: PATH,
    query: HistoryQuery,
    answer: ({ app, query, now }) => showApprovals(app, query, now),
  }),

  listApi('Approvals', {
    summary:
      'List the operations that wait for a person, and then the decided ones, newest first.',
    query: Type.Object(paging(100)),
    row: Approval,
    list: ({ app: { ops }, query }) => q.listApprovals(ops.db, query),
  }),

  ...action({
    params,
    find: async ({ app: { ops }, params: { id } }) => {
      return found(await q.findApproval(ops.db, { id }), 'approval')
    },
    body: Decision,
    act: ({ app: { ops }, actor, params: { id }, body: { decision }, now }) =>
      decideApproval({ ...ops, actor }, id, decision, now),
    api: {
      access: outsideSessions,
      method: 'POST',
      path: '/api/v1/approvals/:id',
      id: 'decideApproval',
      tag: 'Approvals',
      summary: 'Approve or reject an operation that waits. What is approved runs once, and soon.',
      refuses: [409],
      returns: { description: 'The approval', schema: Approval },
    },
    form: {
      access: outsideSessions,
      path: `${PATH}/:id`,
      answer: async ({ app, now }, { operation, status }) => ({
        ...(await showApprovals(app, NEWEST, now)),
        location: PATH,
        done: [status === 'rejected' ? 'rejected' : 'approved', operation],
      }),
      refused: ({ app, now }, refused) => showApprovals(app, NEWEST, now, refused),
    },
  }),
]

/** What waits stands on each page of what became of the others. */
async function showApprovals(
  { ops }: OpsApp,
  query: Type.Static<typeof HistoryQuery>,
  now: Date,
  form: FormState = newForm(Decision),
) {
  const [pending, { rows, older }, { limits }] = await Promise.all([
    q.listPendingApprovals(ops.db, { limit: MAX_PENDING }),
    readPageAfter(PATH, query, keyOf, ({ after: { rank, id }, limit }) =>
      q.pageApprovals(ops.db, { at: new Date(rank), id, limit }),
    ),
    readLimits(ops, now),
  ])
  const shown = (approval: Approval) => {
    const { service, operation, argv } = approval
    const limit = limits.find((one) => one.service === service && one.name === operation)
    return { approval, command: commandText(argv), limit }
  }
  const path = pathOf(PATH, query, NEWEST)
  return approvalsView({ pending: pending.map(shown), rows: rows.map(shown), older, path, form })
}

function keyOf({ created_at, id }: Approval): Key {
  return { rank: created_at.getTime(), id }
}
