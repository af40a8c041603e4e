import type { Event } from '../../db/ops/events.ts'
import type { FoundSession, Line, Session } from '../../db/ops/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { postForm, refusal, submit } from '../form.ts'
import { emptyState, fact, longText, nextLink, listTable, timeTag } from '../parts.ts'
import { eventTable } from './events.ts'
import { opsPage, costText, durationText, modelText, shortText, statusBadge } from './layout.ts'

/** What `/sessions/{id}` shows. */
export interface SessionView extends HeadView {
  readonly lines: readonly Line[]
  /** Whether the lines are the newest ones. */
  readonly atEnd: boolean
}

/** The part of a session's page that changes when the session ends. */
export interface HeadView {
  readonly session: FoundSession
  /** The newest ones. */
  readonly events: readonly Event[]
  /** All sessions of the escalation chain, with this one. */
  readonly chain: readonly Session[]
  readonly stop: StopView
}

/** The Stop form, and whether the session was just asked to stop. */
export interface StopView {
  readonly form: FormState
  readonly isAsked?: boolean
}

/** `/sessions`, newest first. */
export function sessionsPage(sessions: readonly Session[], older: string | undefined): Html {
  return opsPage({
    title: 'Sessions',
    section: 'sessions',
    body: html`<h1>Sessions</h1>
      ${sessionsFragment(sessions, older)}`,
  })
}

export function sessionsFragment(sessions: readonly Session[], older: string | undefined): Html {
  return html`${
    sessions.length === 0
      ? emptyState(html`No sessions here. <a href="/">Start one on the dashboard</a>.`)
      : sessionTable('session-rows', 'Sessions, newest first', sessions)
  }
  ${nextLink(older, 'Older sessions')}`
}

/** `current` is marked in the table. */
function sessionTable(
  bodyId: string,
  caption: string,
  sessions: readonly Session[],
  current?: number,
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'sessions',
    columns: ['Session', 'Status', 'Tier', 'Trigger', 'Started', 'Took', { number: 'Cost' }],
    rows: sessions.map((session) => sessionRow(session, session.id === current)),
  })
}

function sessionRow(session: Session, isCurrent: boolean): Html {
  const { id, status, tier, model, trigger, started_at, duration_ms, cost_usd } = session
  const asked = session.prompt_text ?? 'Check of everything'
  return html`<tr role="row" data-id="${id}">
    <td role="cell" class="type">
      <a href="/sessions/${id}" ${isCurrent && html`aria-current="page"`}>${id}</a>
      <span class="detail">${shortText(asked, 120)}</span>
    </td>
    <td role="cell" class="verify">${statusBadge(status)}</td>
    <td role="cell">
      <span class="narrow-only">tier</span> ${tier} <span class="muted">${modelText(model)}</span>
    </td>
    <td role="cell">${trigger}</td>
    <td role="cell" class="when">${timeTag(started_at)}</td>
    <td role="cell" class="when">${duration_ms === null ? '…' : durationText(duration_ms)}</td>
    <td role="cell" class="number">
      ${cost_usd === null ? html`<span class="muted">–</span>` : costText(cost_usd)}
    </td>
  </tr>`
}

export function sessionPage(view: SessionView): Html {
  const { id, prompt_text } = view.session
  return opsPage({
    title: `Session ${id}`,
    section: 'sessions',
    body: html`<p class="crumb"><a href="/sessions">Sessions</a></p>
      <h1>Session ${id}</h1>
      ${sessionHead(view)} ${outputSection(view)}
      <section aria-labelledby="prompt-title">
        <h2 id="prompt-title">Prompt</h2>
        ${
          prompt_text === null
            ? html`<p class="muted">None: the session checks everything in the inventory.</p>`
            : longText('Prompt', prompt_text)
        }
      </section>`,
  })
}

/** The page's script asks for it again when the session has ended. */
export function sessionHead({ session, events, chain, stop }: HeadView): Html {
  return html`<div
    id="session-head"
    hx-get="/sessions/${session.id}"
    hx-trigger="session-done"
    hx-swap="outerHTML"
    hx-target="this"
  >
    ${stateSection(session, stop)}
    ${
      events.length > 0 &&
      html`<section aria-labelledby="events-title">
        <h2 id="events-title">Events</h2>
        ${eventTable('event-rows', 'Events of the session, newest first', events)}
      </section>`
    }
    ${
      chain.length > 1 &&
      html`<section aria-labelledby="chain-title">
        <h2 id="chain-title">Escalation chain</h2>
        ${sessionTable('chain-rows', 'Sessions of the escalation chain', chain, session.id)}
      </section>`
    }
  </div>`
}

function stateSection(session: FoundSession, stop: StopView): Html {
  const { id, status, summary } = session
  return html`<section class="panel" aria-label="State">
    ${refusal({ id: 'stop', ...stop.form })}
    <div class="title-line">
      <p role="status" id="session-status">
        ${statusBadge(status)}
        ${stop.isAsked === true && status === 'running' && html`<span>stopping…</span>`}
      </p>
      ${
        status === 'running' &&
        postForm(
          { action: `/sessions/${id}/stop`, target: '#session-head' },
          submit(`Stop session ${id}`, { class: 'danger', id: 'stop' }),
        )
      }
    </div>
    ${summary !== null && html`<p class="summary">${summary}</p>`} ${sessionFacts(session)}
  </section>`
}

function sessionFacts(session: FoundSession): Html {
  const { tier, model, trigger, cost_usd, chain_cost, num_turns, exit_code } = session
  const { started_at, ended_at, duration_ms, parent_session_id: parent } = session
  return html`<dl class="facts">
    ${fact('Tier', `${tier}, ${modelText(model)}`)} ${fact('Trigger', trigger)}
    ${fact('Started', timeTag(started_at))} ${ended_at !== null && fact('Ended', timeTag(ended_at))}
    ${duration_ms !== null && fact('Took', durationText(duration_ms))}
    ${fact('Cost', costText(cost_usd))}
    ${chain_cost !== (cost_usd ?? 0) && fact('Cost of the chain', costText(chain_cost))}
    ${num_turns !== null && fact('Turns', num_turns)}
    ${exit_code !== null && fact('Exit code', exit_code)}
    ${
      parent !== null &&
      fact('Escalated from', html`<a href="/sessions/${parent}">session ${parent}</a>`)
    }
  </dl>`
}

function outputSection({ session, lines, atEnd }: SessionView): Html {
  const { id, status } = session
  const first = lines[0]?.seq ?? 1
  const last = lines.at(-1)?.seq ?? 0
  const isLive = status === 'running' && atEnd
  const nothing =
    status === 'running' ? 'No output yet.' : 'No output, or retention has removed it.'
  return html`<section aria-labelledby="output-title">
    <div class="title-line">
      <h2 id="output-title">Output <span class="muted">(times in UTC)</span></h2>
      ${
        isLive &&
        html`<p class="actions js-only">
          <span id="live-state" role="status">connecting…</span>
          <label class="choice"><input type="checkbox" id="follow" checked /> Follow</label>
        </p>`
      }
    </div>
    ${first > 1 && nextLink(`/sessions/${id}?before=${first}`, 'Earlier lines')}
    <div
      id="lines"
      class="output"
      role="log"
      aria-live="off"
      aria-labelledby="output-title"
      tabindex="0"
      ${isLive && html`data-session="${id}" data-last="${last}"`}
    >
      ${lines.map(lineRow)}
    </div>
    ${lines.length === 0 && html`<p class="muted" id="no-lines">${nothing}</p>`}
    ${!atEnd && nextLink(`/sessions/${id}`, 'Newest lines')}
    ${isLive && html`<noscript><p class="muted">Reload the page to see more lines.</p></noscript>`}
    <template id="line-row">${lineRow({ seq: 0, at: new Date(0), kind: '', text: '' })}</template>
  </section>`
}

function lineRow({ seq, at, kind, text }: Line): Html {
  const clock = at.toISOString().slice(11, 19)
  return html`<p class="line" data-seq="${seq}" data-kind="${kind}" title="${at.toISOString()}">
    <span class="at">${clock}</span> <span class="kind">${kind}</span>
    <span class="said">${text}</span>
  </p>`
}
