import { html, type Html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import type { Waiting, WaitingItem } from '../../../services/ops/alerts/waiting.ts'
import { hiddenField, postForm, submit } from '../../form.ts'
import {
  countLine,
  countText,
  emptyState,
  listTable,
  nextLink,
  polled,
  rowLink,
  section,
  tableRow,
  timeTag,
} from '../../parts.ts'
import { stateBadge } from '../watch/checks.ts'
import { levelBadge, opsView, shortText, statusBadge } from '../layout.ts'

/** What `/waiting` shows. */
export interface WaitingView {
  waiting: Waiting
  /** The address of this list, which an open page polls. */
  path: string
  /** Rows that it may have. */
  limit: number
  /** Where more of it is, if this is its beginning. */
  all: string | undefined
}

const NOTHING = 'Nothing waits for you.'

/** `/waiting`: what a person should look at, newest first. */
export function waitingView(view: WaitingView): View {
  return opsView('Waiting', waitingFragment(view))
}

/** The list alone; an open page polls it. */
export function waitingFragment({ waiting, path, all, limit }: WaitingView): Html {
  const { items, readAt, isCut } = waiting
  const table = listTable({
    bodyId: 'waiting-rows',
    caption: 'What waits for a person, newest first',
    kind: 'feed',
    columns: ['What', 'State', 'Since'],
    rows: items.map(waitingRow),
    whenEmpty: emptyState(NOTHING),
  })
  const count = isCut ? `the newest ${items.length}` : countText(items.length, 'thing')
  return section(
    'waiting-title',
    'Waits for you',
    html`${table} ${isCut && nextLink(all, 'Show all')}`,
    { id: 'waiting', ...polled(path, 10, 'waiting') },
    html`${items.length > 0 && countLine(count)} ${items.some(isSeen) && seenForm(readAt, limit)}`,
  )
}

/** Whether it disappears once a person has seen it; a lasting condition does not. */
function isSeen({ kind }: WaitingItem): boolean {
  return kind !== 'check' && kind !== 'notices' && kind !== 'approvals'
}

/** The reply has as many rows as the list has that it takes the place of. */
function seenForm(readAt: Date, limit: number): Html {
  return postForm(
    { action: '/waiting/seen', target: '#waiting' },
    html`${hiddenField('until', readAt.toISOString())} ${hiddenField('limit', String(limit))}
    ${submit('Mark all as seen', { id: 'mark-seen' })}`,
  )
}

function waitingRow(item: WaitingItem): Html {
  const { href, title, detail, badge } = describe(item)
  return tableRow(
    {},
    {
      type: html`${rowLink(href, html`<bdi>${title}</bdi>`)}
      ${detail !== null && html`<span class="detail">${shortText(detail, 200)}</span>`}`,
      verify: badge,
      when: timeTag(item.at),
    },
  )
}

interface Description {
  href: string
  title: string
  detail: string | null
  badge: Html
}

function describe(item: WaitingItem): Description {
  switch (item.kind) {
    case 'event': {
      const { event, times } = item
      const { session_id, service, message, level } = event
      const often = times > 1 ? `, ${times} times` : ''
      return {
        href: session_id === null ? `/events?level=${level}` : `/sessions/${session_id}`,
        title: shortText(message, 200),
        detail: `${service ?? 'Event'}${often}`,
        badge: levelBadge(level),
      }
    }
    case 'alert': {
      const { id, title, problem, source, outcome } = item.alert
      const sender = source === null ? 'Alert' : `Alert of ${source}`
      const why = outcome === 'failed' ? 'no brief could be written' : 'a session was running'
      return {
        href: `/alerts/${id}`,
        title: shortText(title, 200),
        detail: `${sender}: ${problem ?? why}`,
        badge: html`<span class="badge open">not looked into</span>`,
      }
    }
    case 'session': {
      const { id, tier, status, problem } = item.session
      const nobody = status === 'escalated' ? 'No tier took it over.' : null
      return {
        href: `/sessions/${id}`,
        title: `Session ${id}, tier ${tier}`,
        detail: nobody ?? problem,
        badge: statusBadge(status),
      }
    }
    case 'check': {
      const { service, name, message, session_id, state } = item.check
      return {
        href: session_id === null ? '/checks' : `/sessions/${session_id}`,
        title: `${service}: ${name}`,
        detail: message,
        badge: stateBadge(state),
      }
    }
    case 'approvals': {
      const { approvals } = item
      const waits = approvals.length === 1 ? 'waits' : 'wait'
      const names = approvals.map(({ service, operation }) => `${operation} of ${service}`)
      return {
        href: '/approvals',
        title: `${countText(approvals.length, 'operation')} ${waits} for approval`,
        detail: names.join(', '),
        badge: html`<span class="badge open">approve or reject</span>`,
      }
    }
    case 'notices': {
      const { target, count, problem } = item.unsent
      return {
        href: '/notices',
        title: `${countText(count, 'notice')} could not be sent to ${target}`,
        detail: `${problem ?? 'not known why'}; tried again until they are taken`,
        badge: html`<span class="badge bad">not sent</span>`,
      }
    }
  }
}
