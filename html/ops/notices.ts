import type { Send, ShownNotice } from '../../db/notices.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page, View } from '../../kernel/http/view.ts'
import type { ListedNotice, ListedTarget } from '../../services/notices/list.ts'
import { postForm, submit } from '../form.ts'
import {
  countText,
  emptyState,
  facts,
  listTable,
  longText,
  rowLink,
  section,
  tableRow,
  timeTag,
  type More,
} from '../parts.ts'
import { levelBadge, opsView, sessionLink, shortText, type Listed } from './layout.ts'

/** What `/notices` shows. */
interface FoundNotices extends Listed<ListedNotice> {
  lasting: readonly ListedNotice[]
  targets: readonly ShownTarget[]
}

interface ShownTarget extends ListedTarget {
  /** What it gets, in words. */
  rules: string
}

const MAX_MESSAGE = 300
const NO_TARGETS = html`Notices go nowhere so far. Add a target with
  <code>gatehouse notify add</code>, or set <code>OPS_NOTIFY_URL</code>.`

/** `/notices`: what lasts, where notices go, and the newest ones. */
export function noticesView({ lasting, targets, rows, older }: FoundNotices): View {
  const now = noticeTable('lasting-rows', 'What lasts now', lasting, 'Nothing lasts now.')
  const newest = noticeTable('notice-rows', 'Notices, newest first', rows, 'No notices yet.', {
    next: older ?? null,
    label: 'Older notices',
  })
  const content = html`<div id="notices">
    ${section('lasting-title', 'Lasts now', now)}
    ${section('targets-title', 'Targets', targetTable(targets))}
    ${section('newest-title', 'Newest notices', newest)}
  </div>`
  return opsView('Notices', content)
}

function noticeTable(
  bodyId: string,
  caption: string,
  notices: readonly ListedNotice[],
  whenEmpty: string,
  more?: More,
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'feed',
    columns: ['Message', 'Level', 'Service', 'Sent to', 'Time'],
    rows: notices.map(noticeRow),
    whenEmpty: emptyState(whenEmpty),
    ...(more !== undefined && { more }),
  })
}

function noticeRow(notice: ListedNotice): Html {
  const { id, message, level, service, sends, created_at, acknowledged_by } = notice
  return tableRow(
    { 'data-id': id },
    {
      type: html`${rowLink(`/notices/${id}`, shortText(message, MAX_MESSAGE))}
      ${
        acknowledged_by !== null &&
        html`<span class="detail">acknowledged by <bdi>${acknowledged_by}</bdi></span>`
      }`,
      verify: levelBadge(level),
      service: html`<bdi>${service}</bdi>`,
      sends: sends.length === 0 ? 'nobody' : sends.map(sendLine),
      when: timeTag(created_at),
    },
  )
}

function sendLine(send: Send): Html {
  const [look, state] = describeSend(send)
  return html`<span class="detail"
    ><bdi>${send.target}</bdi> <span class="badge ${look}">${state}</span></span
  >`
}

function describeSend({ sent_at, problem }: Send): readonly [look: string, state: string] {
  if (sent_at !== null) return ['verified', 'sent']
  return problem === null ? ['open', 'waits'] : ['bad', 'not taken']
}

function targetTable(targets: readonly ShownTarget[]): Html {
  return listTable({
    bodyId: 'target-rows',
    caption: 'Where notices go',
    kind: 'feed',
    columns: ['Target', 'State', 'Gets', 'Last taken'],
    rows: targets.map(targetRow),
    whenEmpty: emptyState(NO_TARGETS),
  })
}

function targetRow(target: ShownTarget): Html {
  const { name, kind, host, rules, waiting, problem, taken_at } = target
  const [look, state] =
    problem !== null
      ? ['bad', 'failing']
      : taken_at === null
        ? ['unknown', 'not used yet']
        : ['verified', 'takes notices']
  const place = kind === null ? null : `${kind} at ${host}`
  const why = problem !== null && `${problem}; waiting: ${countText(waiting, 'notice')}`
  return tableRow(
    {},
    {
      type: html`<strong><bdi>${name}</bdi></strong>
        <span class="detail">${place} ${why !== false && html`<br /><bdi>${why}</bdi>`}</span>`,
      verify: html`<span class="badge ${look}">${state}</span>`,
      rules,
      when:
        taken_at !== null &&
        html`<span class="narrow-only">last taken</span> ${timeTag(taken_at)}`,
    },
  )
}

/** The page of a notice: what it reports, who looks after it, and which targets got it. */
export function noticePage(notice: ShownNotice, about: string, sends: readonly Send[]): Page {
  const { id } = notice
  const sentTo = listTable({
    bodyId: 'send-rows',
    caption: 'What each target got of it',
    kind: 'feed',
    columns: ['Target', 'State', 'When'],
    rows: sends.map(sendRow),
    whenEmpty: emptyState('No target gets it so far.'),
  })
  return {
    title: `Notice ${id}`,
    section: 'notices',
    body: html`<p class="crumb"><a href="/notices">Notices</a> / notice ${id}</p>
      ${noticePanel(notice, about)} ${section('sends-title', 'Sent to', sentTo)}`,
  }
}

function noticePanel(notice: ShownNotice, about: string): Html {
  const { id, service, level, message, created_at, ended_at, begin_id, session_id } = notice
  const { acknowledged_at: at, acknowledged_by: by } = notice
  return html`<article class="panel card" id="notice-${id}" aria-labelledby="notice-title">
    <div class="title-line">
      <h1 id="notice-title"><bdi>${service}</bdi></h1>
      ${levelBadge(level)}
    </div>
    ${longText('Message', message)}
    ${facts({
      Since: timeTag(created_at),
      Over: ended_at !== null && timeTag(ended_at),
      Began: begin_id !== null && html`<a href="/notices/${begin_id}">notice ${begin_id}</a>`,
      Session: session_id !== null && sessionLink(session_id),
      About: session_id === null && html`<a href="${about}">${about}</a>`,
      Acknowledged: at !== null && html`${timeTag(at)} by <bdi>${by}</bdi>`,
    })}
    ${acknowledgeForm(notice)}
  </article>`
}

/** Of what lasts and nobody looks after so far. */
function acknowledgeForm({ id, lasts, ended_at, acknowledged_at }: ShownNotice): Html | false {
  if (!lasts || ended_at !== null || acknowledged_at !== null) return false
  const action = `/notices/${id}/acknowledge`
  return postForm(
    { action, target: 'main' },
    html`<p class="hint">No reminders are sent once you acknowledge it. Its end is still told.</p>
      ${submit('Acknowledge')}`,
  )
}

function sendRow(send: Send): Html {
  const { target, number, sent_at, problem } = send
  const [look, state] = describeSend(send)
  return tableRow(
    {},
    {
      type: html`<bdi>${target}</bdi>${describeNumber(number)}`,
      verify: html`<span class="badge ${look}"
        >${state}${problem !== null && `: ${problem}`}</span
      >`,
      when: sent_at === null ? '' : timeTag(sent_at),
    },
  )
}

function describeNumber(number: number): string {
  if (number === 0) return ''
  return number < 0 ? ', that it is acknowledged' : `, reminder ${number}`
}
