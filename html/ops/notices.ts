import type { Send, ShownNotice } from '../../db/notices.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import { postForm, submit } from '../form.ts'
import { emptyState, facts, listTable, longText, tableRow, timeTag } from '../parts.ts'
import { levelBadge, sessionLink } from './layout.ts'

/** The page of a notice: what it reports, who looks after it, and which targets got it. */
export function noticePage(notice: ShownNotice, sends: readonly Send[]): Page {
  const { id } = notice
  return {
    title: `Notice ${id}`,
    section: 'events',
    body: html`<p class="crumb"><a href="/events">Events</a> / notice ${id}</p>
      ${noticePanel(notice)}
      ${listTable({
        bodyId: 'send-rows',
        caption: 'What each target got of it',
        kind: 'feed',
        columns: ['Target', 'State', 'When'],
        rows: sends.map(sendRow),
        whenEmpty: emptyState('No target gets it so far.'),
      })}`,
  }
}

function noticePanel(notice: ShownNotice): Html {
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

function sendRow({ target, number, sent_at, problem }: Send): Html {
  const what = number === 0 ? target : html`${target}, reminder ${number}`
  const [look, state] =
    sent_at !== null
      ? ['verified', 'sent']
      : problem === null
        ? ['open', 'waits']
        : ['bad', `not taken: ${problem}`]
  return tableRow(
    {},
    {
      type: html`<bdi>${what}</bdi>`,
      verify: html`<span class="badge ${look}">${state}</span>`,
      when: sent_at === null ? '' : timeTag(sent_at),
    },
  )
}
