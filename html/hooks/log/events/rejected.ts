import type { Rejection, RejectionGroup } from '../../../../db/hooks/receive/rejections.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import type { Explanation } from '../../../../services/hooks/receive/schemes/explain.ts'
import {
  breakable,
  countText,
  emptyState,
  facts,
  listTable,
  section,
  tableRow,
  timeTag,
} from '../../../parts.ts'
import { logFilter } from './filter.ts'
import { logUrl, type LogFilter } from '../../log-url.ts'
import { listHead, listPart, type ListView } from './list.ts'

/** A page of `/log?rejected=1`. */
interface RejectionsView extends ListView {
  /** On the first page alone. */
  groups: readonly ExplainedGroup[]
  rejections: readonly Rejection[]
}

/** Rejected deliveries that are alike, with what is known of their cause. */
export interface ExplainedGroup extends RejectionGroup, Explanation {
  /** What a delivery to this provider must have. */
  expected: string
  /** Whether the provider is there. */
  isKnown: boolean
  /** The name of a provider that may be added for them. */
  missing: string | undefined
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
  const { filter, groups, rejections } = view
  const table = listTable({
    bodyId: 'log-rows',
    caption: 'Refused deliveries, newest first',
    columns: ['Provider', 'Reason', 'Time', 'Status', 'Source'],
    rows: rejections.map(rejectionRow),
  })
  const list = listPart(view, rejections.length > 0 && table, noRejections(filter))
  return html`<div id="log-results">
    ${groups.length > 0 && groupsSection(groups)}
    ${groups.length > 0 ? section('each-title', 'Each delivery', list) : list}
  </div>`
}

function groupsSection(groups: readonly ExplainedGroup[]): Html {
  const content = html`<div class="openables refusals">${groups.map(groupRow)}</div>`
  return section('groups-title', 'By reason, last 7 days', content)
}

/** A row that opens without script: everything is in it. */
function groupRow(group: ExplainedGroup): Html {
  const { provider, status, reason, count, last_at } = group
  return html`<article class="openable" data-provider="${provider}">
    <details>
      <summary>
        <h3>${breakable(reason)}</h3>
        <span class="provider"><bdi>${breakable(provider)}</bdi></span>
        <span class="number">${count.toLocaleString('en')}×</span>
        <span class="when">${timeTag(last_at)}</span>
        <span class="badge bad">${status}</span>
      </summary>
      ${groupContent(group)}
    </details>
  </article>`
}

function groupContent(group: ExplainedGroup): Html {
  const { provider, count, sources, first_at, last_at, cause, expected } = group
  const since = count > 1 && html`, since ${timeTag(first_at)}`
  return html`<div class="card">
    ${facts({
      'Probable cause': cause,
      Expected: expected,
      Came: html`${countText(count, 'time')} from ${countText(sources, 'network')}, last
      ${timeTag(last_at)}${since}`,
    })}
    <p class="actions">
      ${remedy(group)}
      <a href="${logUrl({ provider, rejected: '1' })}">Show all of ${provider}</a>
    </p>
  </div>`
}

/** The way to what mends it. */
function remedy({ provider, remedy: kind, isKnown, missing }: ExplainedGroup): Html | false {
  if (missing !== undefined) {
    const href = `/providers/new?name=${encodeURIComponent(missing)}`
    return html`<a class="button" href="${href}">Add provider “${missing}”</a>`
  }
  if (!isKnown || kind === 'none' || kind === 'add') return false
  const key = encodeURIComponent(provider)
  const label = { rotate: 'Rotate', enable: 'Enable', 'set secret': 'Set the secret' }[kind]
  return html`<a class="button" href="/providers?open=${key}#provider-${key}">${label}…</a>`
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
