import type { Approval, ApprovalStatus } from '../../../db/ops/agent/approvals.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import type { OperationLimit } from '../../../services/ops/agent/operations/limits.ts'
import { hiddenField, postForm, refusal, submit } from '../../form.ts'
import { contentView } from '../../layout.ts'
import {
  cards,
  copyBox,
  countLine,
  countText,
  emptyState,
  facts,
  listTable,
  nextLink,
  polled,
  section,
  tableRow,
  timeTag,
} from '../../parts.ts'
import { limitBadge } from './operations.ts'
import { sessionLink, shortText, type Listed } from '../layout.ts'

/** An approval with the limit of its operation; without one the inventory has it no more. */
interface ShownApproval {
  approval: Approval
  /** What it runs, for people. */
  command: string
  limit: OperationLimit | undefined
}

const ABOVE = html`<p class="crumb"><a href="/cooldowns">Cooldowns</a> / approvals</p>
  <h1>Approvals</h1>
  <p class="muted">
    Operations that a session asked for and that do not run before a person approves them. Before
    one runs, its command, its cooldown and dry run are checked again.
  </p>`
const NOTHING = 'Nothing waits for approval.'
const LOOKS: Readonly<Record<ApprovalStatus, string>> = {
  pending: 'open',
  approved: 'token',
  rejected: 'open',
  expired: 'open',
  running: 'token',
  done: 'verified',
  failed: 'bad',
  refused: 'bad',
  interrupted: 'bad',
}

/** What `/approvals` shows: its rows are those that wait no longer. */
interface ApprovalsView extends Listed<ShownApproval> {
  pending: readonly ShownApproval[]
  /** The address of this page, which an open page polls. */
  path: string
  form: FormState
}

/** `/approvals`: what waits for a person, and what became of the rest. */
export function approvalsView(view: ApprovalsView): View {
  const page = { title: 'Approvals', section: 'cooldowns', above: ABOVE }
  return contentView(page, approvalsFragment(view))
}

/** The lists alone; an open page polls them. */
function approvalsFragment({ pending, rows, older, path, form }: ApprovalsView): Html {
  const count = countLine(countText(pending.length, 'operation'))
  const content = html`${refusal({ id: 'decide', ...form })}
  ${cards(pending.map(approvalCard), NOTHING)}`
  const history = html`${historyTable(rows)} ${nextLink(older, 'Older decisions')}`
  const own = { id: 'approvals', ...polled(path, 5, 'approvals') }
  return section(
    'pending-title',
    'Waiting',
    html`${content} ${section('history-title', 'History', history)}`,
    own,
    pending.length > 0 && count,
  )
}

function approvalCard({ approval, command, limit }: ShownApproval): Html {
  const { id, service, operation, reason, session_id, created_at, expires_at } = approval
  const name = `${operation} of ${service}`
  const asked = html`${timeTag(created_at)}${session_id !== null && html`, ${sessionLink(session_id)}`}`
  return html`<article class="panel card" aria-labelledby="approval-${id}">
    <div class="title-line">
      <h2 id="approval-${id}"><bdi>${name}</bdi></h2>
      ${approvalBadge('pending')}
    </div>
    ${copyBox(`command-${id}`, 'command', command)}
    <p><bdi>${reason}</bdi></p>
    ${facts({
      Asked: asked,
      Expires: timeTag(expires_at),
      Cooldown: limit === undefined ? 'the inventory has it no more' : cooldownText(limit),
    })}
    <div class="field actions">
      ${decisionForm(id, name, 'approve', 'Approve')} ${decisionForm(id, name, 'reject', 'Reject')}
    </div>
  </article>`
}

function cooldownText(limit: OperationLimit): Html {
  const { count, most, window } = limit
  return html`${limitBadge(limit)} <span class="detail">${count} of ${most} in ${window}</span>`
}

function decisionForm(id: number, name: string, decision: string, verb: string): Html {
  const look = decision === 'approve' ? { class: 'primary' } : {}
  return postForm(
    { action: `/approvals/${id}`, target: '#approvals' },
    html`${hiddenField('decision', decision)}
    ${submit(html`${verb} <span class="hidden">${name}</span>`, {
      id: `${decision}-${id}`,
      ...look,
    })}`,
  )
}

function historyTable(approvals: readonly ShownApproval[]): Html {
  return listTable({
    bodyId: 'approval-rows',
    caption: 'Decided operations, newest first',
    kind: 'feed',
    columns: ['Operation', 'State', 'Session', 'When'],
    rows: approvals.map(historyRow),
    whenEmpty: emptyState('No decisions yet.'),
  })
}

function historyRow({ approval, command }: ShownApproval): Html {
  const { service, operation, reason, status, outcome, session_id } = approval
  const { created_at, decided_at, decided_by } = approval
  return tableRow(
    {},
    {
      type: html`<bdi>${operation} of ${service}</bdi>
        <span class="detail"><code>${shortText(command, 200)}</code></span>
        <span class="detail">${shortText(reason, 200)}</span>`,
      verify: html`${approvalBadge(status)}
      ${decided_by !== null && html`<span class="detail">by <bdi>${decided_by}</bdi></span>`}
      ${outcome !== null && html`<span class="detail">${shortText(outcome, 200)}</span>`}`,
      session: session_id !== null && sessionLink(session_id),
      when: timeTag(decided_at ?? created_at),
    },
  )
}

export function approvalBadge(status: ApprovalStatus): Html {
  const text = status === 'pending' ? 'waits' : status
  return html`<span class="badge ${LOOKS[status]}">${text}</span>`
}
