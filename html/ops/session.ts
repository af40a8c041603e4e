import type { Event } from '../../db/ops/events.ts'
import type { FoundSession, Line, Session } from '../../db/ops/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import { fact } from '../parts.ts'
import { timeTag } from '../text.ts'
import { eventTable } from './events.ts'
import { opsPage } from './layout.ts'
import { costText, durationText, modelText, refusedNote, statusBadge } from './parts.ts'
import { sessionTable } from './session-table.ts'

/** What `/sessions/{id}` shows. */
export interface SessionView extends HeadView {
  /** The newest lines, or those before one. */
  readonly lines: readonly Line[]
  /** Whether the lines are the newest ones. */
  readonly atEnd: boolean
}

/** How a session stands. */
export interface HeadView {
  readonly session: FoundSession
  /** The newest of what it has noted. */
  readonly events: readonly Event[]
  /** All sessions of its escalation chain, itself too. */
  readonly chain: readonly Session[]
  /** What came of a request to stop it. */
  readonly stop: StopView
}

export interface StopView {
  readonly refused: string | null
  readonly asked: boolean
}

export function sessionPage(view: SessionView): Html {
  const { id, prompt_text } = view.session
  return opsPage({
    title: `Session ${id}`,
    section: 'sessions',
    body: html`<p class="crumb"><a href="/sessions">Sessions</a></p>
      <h1>Session ${id}</h1>
      ${headFragment(view)} ${outputSection(view)}
      <section aria-labelledby="prompt-title">
        <h2 id="prompt-title">Prompt</h2>
        ${
          prompt_text === null
            ? html`<p class="muted">None: a look at everything in the inventory.</p>`
            : html`<pre
                class="payload"
                tabindex="0"
                aria-label="Prompt"
              ><code>${prompt_text}</code></pre>`
        }
      </section>`,
  })
}

/** The answer to `POST /sessions/{id}/stop`; the page asks for it again when the session has ended. */
export function headFragment({ session, events, chain, stop }: HeadView): Html {
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
  const { id, status, tier, model, trigger, summary } = session
  const took = session.duration_ms
  return html`<section class="panel" aria-label="State">
    ${refusedNote(stop.refused, 'stop-refused')}
    <div class="title-line">
      <p role="status" id="session-status">
        ${statusBadge(status)} ${stop.asked && status === 'running' && html`<span>stopping…</span>`}
      </p>
      ${
        status === 'running' &&
        html`<form
          method="post"
          action="/sessions/${id}/stop"
          hx-post="/sessions/${id}/stop"
          hx-target="#session-head"
          hx-swap="outerHTML"
        >
          <button type="submit" class="danger" id="stop">Stop session ${id}</button>
        </form>`
      }
    </div>
    ${summary !== null && html`<p class="summary">${summary}</p>`}
    <dl class="facts">
      ${fact('Tier', `${tier}, ${modelText(model)}`)} ${fact('Trigger', trigger)}
      ${fact('Started', timeTag(session.started_at))}
      ${session.ended_at !== null && fact('Ended', timeTag(session.ended_at))}
      ${took !== null && fact('Took', durationText(took))}
      ${fact('Cost', costText(session.cost_usd))}
      ${
        session.chain_cost !== (session.cost_usd ?? 0) &&
        fact('Cost of the chain', costText(session.chain_cost))
      }
      ${session.num_turns !== null && fact('Turns', session.num_turns)}
      ${session.exit_code !== null && fact('Exit code', session.exit_code)}
      ${
        session.parent_session_id !== null &&
        fact(
          'Escalated from',
          html`<a href="/sessions/${session.parent_session_id}"
            >session ${session.parent_session_id}</a
          >`,
        )
      }
    </dl>
  </section>`
}

function outputSection({ session, lines, atEnd }: SessionView): Html {
  const { id, status } = session
  const first = lines[0]?.seq ?? 1
  const last = lines.at(-1)?.seq ?? 0
  const live = status === 'running' && atEnd
  const nothing =
    status === 'running' ? 'No output yet.' : 'No output, or retention has removed it.'
  return html`<section aria-labelledby="output-title">
    <div class="title-line">
      <h2 id="output-title">Output <span class="muted">(times in UTC)</span></h2>
      ${
        live &&
        html`<p class="actions js-only">
          <span id="live-state" role="status">connecting…</span>
          <label class="choice"><input type="checkbox" id="follow" checked /> Follow</label>
        </p>`
      }
    </div>
    ${
      first > 1 &&
      html`<p class="more"><a href="/sessions/${id}?before=${first}">Earlier lines</a></p>`
    }
    <div
      id="lines"
      class="output"
      role="log"
      aria-live="off"
      aria-labelledby="output-title"
      tabindex="0"
      ${live && html`data-session="${id}" data-last="${last}"`}
    >
      ${lines.map(lineRow)}
    </div>
    ${lines.length === 0 && html`<p class="muted" id="no-lines">${nothing}</p>`}
    ${!atEnd && html`<p class="more"><a href="/sessions/${id}">Newest lines</a></p>`}
    ${live && html`<noscript><p class="muted">Reload the page to see further lines.</p></noscript>`}
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
