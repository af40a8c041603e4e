import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, one, optional, sqlFile, Timestamp } from '../../sql-file.ts'

const Id = Type.Integer()
const Text = Type.String()

export const ApprovalStatus = Type.Enum([
  'pending',
  'approved',
  'rejected',
  'expired',
  'running',
  'done',
  'failed',
  'refused',
  'interrupted',
])
export type ApprovalStatus = Type.Static<typeof ApprovalStatus>

/** An operation that a session asked for, and what people made of it. */
export const Approval = Type.Object({
  id: Id,
  status: ApprovalStatus,
  service: Text,
  operation: Text,
  /** What is run, without secrets. */
  argv: Type.Array(Text),
  /** Why, by the session. */
  reason: Text,
  session_id: nullable(Id),
  created_at: Timestamp,
  expires_at: Timestamp,
  decided_at: nullable(Timestamp),
  decided_by: nullable(Text),
  outcome: nullable(Text),
})
export type Approval = Type.Static<typeof Approval>

/** One that a process has taken, with the marker of its processes. */
const Claimed = Type.Object({ ...Approval.properties, marker: Text })
export type Claimed = Type.Static<typeof Claimed>

/** One that a process runs, or has left behind. */
const Running = Type.Object({
  id: Id,
  holder: Text,
  machine: Text,
  marker: Text,
  action_id: nullable(Id),
  open: Type.Boolean(),
  silent_ms: Type.Number(),
})
export type Running = Type.Static<typeof Running>

const end = { id: 'int8', status: 'text', outcome: 'text' } as const
const owner = { holder: 'text', machine: 'text' } as const

export const approvalQueries = sqlFile('sql/ops/agent/approvals.sql', {
  addApproval: one(Approval, {
    session: 'int8',
    service: 'text',
    operation: 'text',
    argv: 'jsonb',
    reason: 'text',
  }),
  findOpenApproval: optional(Approval, { service: 'text', operation: 'text' }),
  findApproval: optional(Approval, { id: 'int8' }),
  listApprovals: many(Approval, { offset: 'int8', limit: 'int8' }),
  pageApprovals: many(Approval, { at: 'timestamptz', id: 'int8', limit: 'int8' }),
  listPendingApprovals: many(Approval, { limit: 'int8' }),
  decideApproval: optional(Approval, { id: 'int8', status: 'text', by: 'text' }),
  expireApprovals: many(Approval, { limit: 'int8' }),
  claimApproval: optional(Claimed, owner),
  setApprovalAction: exec({ id: 'int8', action: 'int8' }),
  endApproval: optional(Type.Object({ id: Id }), end),
  renewApprovals: exec(owner),
  listRunningApprovals: many(Running, { limit: 'int8' }),
  interruptApproval: optional(Approval, { id: 'int8', holder: 'text', outcome: 'text' }),
})
