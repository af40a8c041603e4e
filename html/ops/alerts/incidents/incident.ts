import type { Alert } from '../../../../db/ops/alerts/alerts.ts'
import type { AlertSession } from '../../../../db/ops/agent/sessions.ts'
import type {
  IncidentChange,
  IncidentCheck,
  IncidentOperation,
  Note,
} from '../../../../db/ops/alerts/incidents.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState } from '../../../../kernel/http/view.ts'
import type { Incident } from '../../../../services/ops/alerts/incidents/incidents.ts'
import { field, postForm, refusal, submitLine } from '../../../form.ts'
import { markdown } from '../../../markdown.ts'
import {
  cardList,
  countLine,
  countText,
  disclosed,
  listTable,
  rowLink,
  section,
  tableRow,
  timeTag,
} from '../../../parts.ts'
import { approvalBadge } from '../../agent/approvals.ts'
import { stateBadge } from '../../watch/checks.ts'
import { eventTable } from '../../events.ts'
import { costText, durationText, sessionLink, shortText, statusBadge } from '../../layout.ts'
import { memoryCard } from '../../agent/memories.ts'
import { sessionTable } from '../../agent/sessions/list.ts'

/** What was found and done while an alert fired, and since. */
export function incidentSections(incident: Incident): readonly (Html | false)[] {
  const { sessions, found, checks, changes, events, operations, memories, before, earlier } =
    incident
  return [
    sessions.length > 0 && sessionSection(incident),
    found.some(({ summary }) => summary !== null) &&
      section('found-title', 'What was found', html`${found.map(foundBlock)}`, PANEL),
    events.length > 0 &&
      section('events-title', 'Events', eventTable('event-rows', 'Events, newest first', events)),
    operations.length > 0 && section('done-title', 'What was done', operationTable(operations)),
    checks.length > 0 && section('checks-title', 'Checks', checkTable(checks)),
    changes.length > 0 && section('changes-title', 'Changes of states', changeTable(changes)),
    memories.length > 0 &&
      section(
        'memories-title',
        'What was learned',
        cardList(memories.map((memory) => memoryCard({ memory }))),
      ),
    before.length + earlier.length > 0 && beforeSection(incident),
  ]
}

const PANEL = { class: 'panel' }

/** What an incident took. It has no cost before its first session. */
export function spentFacts({
  duration,
  cost,
  sessions,
}: Incident): Record<string, string | false> {
  return {
    Duration: durationText(duration),
    Cost: sessions.length > 0 && costText(cost),
  }
}

function sessionSection({ sessions }: Incident): Html {
  const rows = sessions.map((session) => ({
    ...session,
    prompt_text: chainText(session),
  }))
  const count = countLine(countText(sessions.length, 'session'))
  const table = sessionTable('session-rows', 'Sessions, newest first', rows)
  return section('sessions-title', 'Sessions', table, {}, count)
}

/** What started a session: a person, the alert, or the session before it in its chain. */
export function chainText({ trigger, parent_session_id: parent }: AlertSession): string {
  if (parent !== null) return `Escalated from session ${parent}`
  return trigger === 'alert' ? 'Started by the alert' : 'Started by a person'
}

function foundBlock({ id, tier, status, summary }: AlertSession): Html | false {
  if (summary === null) return false
  return html`<div class="title-line">
      <h3>${sessionLink(id)} <span class="muted">tier ${tier}</span></h3>
      ${statusBadge(status)}
    </div>
    <div class="summary">${markdown(summary)}</div>`
}

function operationTable(operations: readonly IncidentOperation[]): Html {
  return listTable({
    bodyId: 'operation-rows',
    caption: 'Operations, newest first',
    kind: 'feed',
    columns: ['Operation', 'Approval', 'Session', 'Time'],
    rows: operations.map(operationRow),
  })
}

function operationRow(operation: IncidentOperation): Html {
  const { status, decided_by, session_id, at } = operation
  return tableRow(
    {},
    {
      type: html`<bdi>${operation.operation} of ${operation.service}</bdi>
        <span class="detail"><bdi>${outcomeText(operation)}</bdi></span>`,
      verify:
        status === null
          ? html`<span class="muted">not needed</span>`
          : html`${approvalBadge(status)}
            ${decided_by !== null && html`<span class="detail">by <bdi>${decided_by}</bdi></span>`}`,
      session: session_id !== null && sessionLink(session_id),
      when: timeTag(at),
    },
  )
}

/** What became of an operation. */
export function outcomeText({ outcome, status, reason }: IncidentOperation): string {
  const became = outcome ?? (status === null || status === 'running' ? 'runs' : 'not run')
  return shortText(reason === null ? became : `${became}; asked for: ${reason}`, 400)
}

function checkTable(checks: readonly IncidentCheck[]): Html {
  return listTable({
    bodyId: 'check-rows',
    caption: 'Checks that the alert is about, as they are now',
    kind: 'feed',
    columns: ['Check', 'State now', 'Last message', 'Since'],
    rows: checks.map(({ id, service, name, state, message, since, checked_at }) =>
      tableRow(
        {},
        {
          type: rowLink(`/checks/${id}`, html`<bdi>${service}: ${name}</bdi>`),
          verify: stateBadge(state),
          message: shortText(message, 300),
          when: checked_at !== null && timeTag(since),
        },
      ),
    ),
  })
}

function changeTable(changes: readonly IncidentChange[]): Html {
  return listTable({
    bodyId: 'change-rows',
    caption: 'Changes of states, newest first',
    kind: 'feed',
    columns: ['Check', 'Became', { number: 'Lasted' }, 'Message', 'Began'],
    rows: changes.map(({ check_id, service, name, state, began_at, ended_at, message }) =>
      tableRow(
        {},
        {
          type: rowLink(`/checks/${check_id}`, html`<bdi>${service}: ${name}</bdi>`),
          verify: stateBadge(state),
          number:
            ended_at === null ? 'lasts' : durationText(ended_at.getTime() - began_at.getTime()),
          message: shortText(message, 300),
          when: timeTag(began_at),
        },
      ),
    ),
  })
}

function beforeSection({ before, earlier }: Incident): Html {
  const links = html`<p class="actions">
    Earlier: ${earlier.map(({ id }) => html`${sessionLink(id)} `)}
  </p>`
  return section(
    'before-title',
    'Found and done before',
    html`${cardList(before.map(beforeCard))} ${earlier.length > 0 && links}`,
  )
}

function beforeCard({ id, status, started_at, summary, operations }: AlertSession): Html {
  return html`<article class="panel card">
    <div class="title-line">
      <h3>${sessionLink(id)}</h3>
      ${statusBadge(status)}
    </div>
    <p class="muted">${timeTag(started_at)}</p>
    ${summary !== null && html`<p><bdi>${shortText(summary, 800)}</bdi></p>`}
    ${
      operations.length > 0 &&
      html`<ul>
        ${operations.map((line) => html`<li><bdi>${line}</bdi></li>`)}
      </ul>`
    }
  </article>`
}

/** What people noted, with a form that adds to it. */
export function notesSection(
  { id }: Pick<Alert, 'id'>,
  notes: readonly Note[],
  state: FormState,
): Html {
  const form = { id: 'note', ...state }
  const content = html`${notes.length > 0 && cardList(notes.map(noteCard))}
  ${disclosed(
    'Add a note…',
    postForm(
      { class: 'stack changes', action: `/alerts/${id}/notes`, target: '#notes' },
      html`${refusal(form)} ${field(form, 'text', 'Note', { rows: 3 })}
      ${submitLine('Add note', 'add-note')}`,
    ),
    { class: 'panel', open: form.fault !== undefined, summaryId: 'new-note' },
  )}`
  return section('notes-title', 'Notes', content, { id: 'notes' })
}

function noteCard({ id, at, author, text }: Note): Html {
  return html`<article class="panel card" id="note-${id}">
    <p class="observation"><bdi>${text}</bdi></p>
    <p class="muted"><bdi>${author}</bdi> · ${timeTag(at)}</p>
  </article>`
}
