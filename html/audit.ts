import type { Change } from '../db/audit.ts'
import { html, type Html } from '../kernel/html.ts'
import type { View } from '../kernel/http/view.ts'
import { contentView } from './layout.ts'
import { breakable, emptyState, listTable, tableRow, timeTag } from './parts.ts'

/** A page of the audit of a service. */
export interface AuditPage {
  changes: readonly Change[]
  /** Address of the next page; null on the last one. */
  next: string | null
}

/** Where the page stands in its service. */
interface AuditPlace {
  /** The marked entry of the navigation, or `none`. */
  section: string
  /** What stands below the heading. */
  below?: Html
}

/** Who changed what in a service, newest first. */
export function auditView({ changes, next }: AuditPage, { section, below }: AuditPlace): View {
  const content = html`<section id="audit" aria-label="Changes">
    ${listTable({
      bodyId: 'audit-rows',
      caption: 'Changes, newest first',
      kind: 'dense',
      columns: ['Change', 'By', 'Time'],
      rows: changes.map(changeRow),
      whenEmpty: emptyState('No changes yet.'),
      more: { next, label: 'Older changes' },
    })}
  </section>`
  const above = html`<h1>Audit</h1>
    ${below}
    <p class="muted">
      Who changed what. <code>gatehouse audit</code> lists the changes of all services.
    </p>`
  return contentView({ title: 'Audit', section, above }, content)
}

function changeRow({ id, at, actor, action, subject }: Change): Html {
  return tableRow(
    { 'data-id': id },
    {
      type: html`${action}: <bdi>${breakable(subject)}</bdi>`,
      actor: html`<bdi>${breakable(actor)}</bdi>`,
      when: timeTag(at),
    },
  )
}
