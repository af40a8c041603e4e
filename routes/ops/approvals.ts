import Type from 'typebox'
import { Approval, approvalQueries as q } from '../../db/ops/approvals.ts'
import { approvalsView } from '../../html/ops/approvals.ts'
import { found } from '../../kernel/fault.ts'
import { newForm, type FormState } from '../../kernel/http/view.ts'
import { decideApproval, Decision } from '../../services/ops/approvals/approvals.ts'
import { readLimits } from '../../services/ops/operations/limits.ts'
import { commandText } from '../../services/ops/tools/programs.ts'
import { outsideSessions } from './access.ts'
import { action, idOf, page, type OpsApp } from './kit.ts'
import { listApi, paging } from './paging.ts'

const PATH = '/approvals'
const params = { id: idOf('approval') }
const MAX_SHOWN = 100

/** Operations that wait for a person, and what became of them (decisions.md section 7). */
export const approvalEndpoints = [
  page({ path: PATH, answer: ({ app, now }) => showApprovals(app, now) }),

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
        ...(await showApprovals(app, now)),
        location: PATH,
        done: [status === 'rejected' ? 'rejected' : 'approved', operation],
      }),
      refused: ({ app, now }, refused) => showApprovals(app, now, refused),
    },
  }),
]

async function showApprovals({ ops }: OpsApp, now: Date, form: FormState = newForm(Decision)) {
  const [approvals, { limits }] = await Promise.all([
    q.listApprovals(ops.db, { offset: 0, limit: MAX_SHOWN }),
    readLimits(ops, now),
  ])
  const shown = approvals.map((approval) => {
    const { service, operation } = approval
    const limit = limits.find((one) => one.service === service && one.name === operation)
    return { approval, command: commandText(approval.argv), limit }
  })
  return approvalsView(shown, form)
}
