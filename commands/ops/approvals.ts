import { approvalQueries } from '../../db/ops/agent/approvals.ts'
import { accepted } from '../../kernel/variables.ts'
import { decideApproval } from '../../services/ops/agent/approvals/approvals.ts'
import { commandText } from '../../services/ops/agent/tools/programs.ts'
import { command, JSON_FLAG, refuseSessions, value } from '../frame/command.ts'
import { printRows } from '../frame/output.ts'

const MAX_LISTED = 100

const ID = value(
  'ID',
  'the number of the approval, as approvals shows it',
  accepted('a whole number', (given) => {
    const id = Number(given)
    return /^\d+$/.test(given) && Number.isSafeInteger(id) ? id : undefined
  }),
)

/** `gatehouse approvals` and `gatehouse approve`: operations that wait for a person. */
export const commands = [
  command({
    name: 'approvals',
    summary: 'list the operations that wait for a person, and then the decided ones',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output }) {
      const rows = await approvalQueries.listApprovals(db, { offset: 0, limit: MAX_LISTED })
      printRows(output, json, rows, {
        ID: ({ id }) => String(id),
        STATE: ({ status }) => status,
        OPERATION: ({ service, operation }) => `${operation} of ${service}`,
        EXPIRES: ({ status, expires_at }) =>
          status === 'pending' ? expires_at.toISOString() : '',
        BY: ({ decided_by }) => decided_by ?? '',
        COMMAND: ({ argv }) => commandText(argv),
        REASON: ({ reason }) => reason,
      })
    },
  }),
  command({
    name: 'approve',
    summary: 'approve an operation that waits: a running server runs it, once',
    args: { id: ID },
    flags: { reject: { summary: 'reject it instead' } },
    needs: 'database',
    check: refuseSessions,
    async run({ args: { id }, flags: { reject } }, { output, now, ...tools }) {
      const decision = reject ? 'reject' : 'approve'
      const { service, operation, status } = await decideApproval(tools, id, decision, now())
      output.err(`${operation} of ${service} is ${status}`)
    },
  }),
]
