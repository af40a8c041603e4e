import type { Event } from '../../db/ops/events.ts'
import type { FoundSession, Line, Session } from '../../db/ops/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, View } from '../../kernel/http/view.ts'
import { postForm, refusal, submit } from '../form.ts'
import { emptyState, facts, longText, nextLink, listTable, tableRow, timeTag } from '../parts.ts'
import { eventTable } from './events.ts'
import {
  costText,
  durationText,
  modelText,
  opsView,
  sessionLink,
  shortText,
  statusBadge,
  type Listed,
} from './layout.ts'

/** What `/sessions/{id}` shows. */
export interface ShownSession {
  session: FoundSession
  /** The newest ones. */
  events: readonly Event[]
  /** All sessions of the escalation chain, with this one. */
  chain: readonly Session[]
  lines: readonly Line[]
  /** Whether the lines are the newest ones. */
  atEnd: boolean
  /** Whether it was just asked to stop. */
  isAsked?: boolean
  /** Why it was not stopped. */
  fault?: FormState['fault']
}

/** `/sessions`, newest first. */
export function sessionsView({ rows, older }: Listed<Session>): View {
  const table = sessionTable('session-rows', 'Sessions, newest first', rows)
  return opsView('Sessions', html`${table} ${nextLink(older, 'Older sessions')}`)
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
    whenEmpty: emptyState(html`No sessions here. <a href="/">Start one on the dashboard</a>.`),
  })
}

function sessionRow(session: Session, isCurrent: boolean): Html {
  const { id, status, tier, model, trigger, started_at, duration_ms, cost_usd } = session
  const current = isCurrent && html`aria-current="page"`
  const asked = session.prompt_text ?? 'Check of everything'
  return tableRow(
    { 'data-id': id },
    {
      type: html`<a href="/sessions/${id}" ${current}>${id}</a>
        <span class="detail">${shortText(asked, 120)}</span>`,
      verify: statusBadge(status),
      tier: html`<span class="narrow-only">tier</span> ${tier}
        <span class="muted">${modelText(model)}</span>`,
      trigger,
      when: timeTag(started_at),
      'when took': duration_ms === null ? '…' : durationText(duration_ms),
      number: cost_usd === null ? html`<span class="muted">–</span>` : costText(cost_usd),
    },
  )
}

/** The page, and its head that htmx replaces. */
export function sessionView(shown: ShownSession): View {
  const { id, prompt_text } = shown.session
  const title = `Session ${id}`
  const head = sessionHead(shown)
  const prompt =
    prompt_text === null
      ? html`<p class="muted">None: the session checks everything in the inventory.</p>`
      : longText('Prompt', prompt_text)
  const body = html`<p class="crumb"><a href="/sessions">Sessions</a></p>
    <h1>${title}</h1>
    ${head} ${outputSection(shown)}
    <section aria-labelledby="prompt-title">
      <h2 id="prompt-title">Prompt</h2>
      ${prompt}
    </section>`
  return {
    page: () => ({ title, section: 'sessions', body }),
    fragment: () => head,
  }
}

/** The page's script asks for it again when the session has ended. */
function sessionHead(shown: ShownSession): Html {
  const { session, events, chain } = shown
  return html`<div
    id="session-head"
    hx-get="/sessions/${session.id}"
    hx-trigger="session-done"
    hx-swap="outerHTML"
    hx-target="this"
  >
    ${stateSection(shown)}
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

function stateSection({ session, fault, isAsked = false }: ShownSession): Html {
  const { id, status, summary } = session
  return html`<section class="panel" aria-label="State">
    ${refusal({ id: 'stop', fault })}
    <div class="title-line">
      <p role="status" id="session-status">
        ${statusBadge(status)} ${isAsked && status === 'running' && html`<span>stopping…</span>`}
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
  const { tier, model, trigger, cost_usd, chain_cost, num_turns, tool_calls, exit_code } = session
  const { started_at, ended_at, duration_ms, parent_session_id: parent } = session
  return facts({
    Tier: `${tier}, ${modelText(model)}`,
    Trigger: trigger,
    Started: timeTag(started_at),
    Ended: ended_at !== null && timeTag(ended_at),
    Took: duration_ms !== null && durationText(duration_ms),
    Cost: costText(cost_usd),
    'Cost of the chain': chain_cost !== (cost_usd ?? 0) && costText(chain_cost),
    Turns: num_turns ?? false,
    'Tool calls': tool_calls === 0 ? 'none: nothing was checked' : (tool_calls ?? false),
    'Exit code': exit_code ?? false,
    'Escalated from': parent !== null && sessionLink(parent),
  })
}

function outputSection({ session, lines, atEnd }: ShownSession): Html {
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
