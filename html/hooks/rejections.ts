import type { Rejection } from '../../db/hooks/rejections.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import { emptyState, listTable, tableRow, timeTag } from '../parts.ts'
import { logFilter, type LogFilter } from './events/filter.ts'
import { listHead, listPart, type ListView } from './events/list.ts'

/** A page of `/log?rejected=1`. */
interface RejectionsView extends ListView {
  rejections: readonly Rejection[]
}

const REJECTED =
  'A refused delivery is kept without its payload, and its source only as a network. ' +
  'The oldest are dropped first.'

/** `/log?rejected=1`: deliveries that were refused. */
export function rejectionsPage(view: RejectionsView): Page {
  return {
    title: 'Rejected deliveries',
    section: 'log',
    body: html`${listHead('rejected')}
      <p class="muted">${REJECTED}</p>
      ${logFilter(view)} ${rejectionsFragment(view)}`,
  }
}

/** The table of `/log?rejected=1`; used as `logFragment` is. */
export function rejectionsFragment(view: RejectionsView): Html {
  const { filter, rejections } = view
  const table = listTable({
    bodyId: 'log-rows',
    caption: 'Refused deliveries, newest first',
    columns: ['Provider', 'Reason', 'Time', 'Status', 'Source'],
    rows: rejections.map(rejectionRow),
  })
  return html`<div id="log-results">
    ${listPart(view, rejections.length > 0 && table, noRejections(filter))}
  </div>`
}

function noRejections({ provider }: LogFilter): Html {
  const from = provider === '' ? '' : ' from this provider'
  const note = 'A delivery with a wrong signature or token would be listed here.'
  return emptyState(`Nothing was refused${from}.`, html`<span class="muted">${note}</span>`)
}

function rejectionRow({ provider, reason, at, status, source }: Rejection): Html {
  const verify = html`<span class="badge bad">${status}</span>`
  return tableRow({}, { provider, type: reason, when: timeTag(at), verify, source })
}
