import type { Event } from '../../../../db/ops/events.ts'
import type { SessionRecord } from '../../../../db/ops/agent/operations.ts'
import type {
  FoundSession,
  Line,
  Session,
  Status,
  Trigger,
} from '../../../../db/ops/agent/sessions.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState, View } from '../../../../kernel/http/view.ts'
import type { Call, Story } from '../../../../services/ops/agent/sessions/story.ts'
import { postForm, refusal, sentence, submit } from '../../../form.ts'
import { contentView } from '../../../layout.ts'
import { markdown } from '../../../markdown.ts'
import {
  attributes,
  countText,
  facts,
  followed,
  nextLink,
  section,
  timeTag,
} from '../../../parts.ts'
import { eventTable } from '../../events.ts'
import { costText, durationText, sessionLink, statusBadge } from '../../layout.ts'
import { promptText } from './prompt.ts'
import { sessionTable } from './list.ts'
import { callBlock, storySection } from './story.ts'

/** What `/sessions/{id}` shows. */
export interface ShownSession {
  session: FoundSession
  /** The alert that its chain looks into. */
  alert: { id: number; title: string } | undefined
  /** The newest ones. */
  events: readonly Event[]
  /** All sessions of the escalation chain, with this one. */
  chain: readonly Session[]
  /** What it did, by the record. */
  record: SessionRecord
  /** The story of a session that has ended, or lines; `atEnd` if they are the newest ones. */
  output: Story | { lines: readonly Line[]; atEnd: boolean }
  /** Whether it was just asked to stop. */
  isAsked?: boolean
  /** Why it was not stopped. */
  fault?: FormState['fault']
}

/** The page; htmx replaces its content once the session has ended. */
export function sessionView(shown: ShownSession): View {
  const { id } = shown.session
  const { output } = shown
  const own = { id: 'session', ...followed(`/sessions/${id}`, 'done', 'lines', 'session') }
  const content = html`<div${attributes(own)}>
    ${sessionHead(shown)}
    ${'turns' in output ? storySection(shown.session, output) : linesSection(shown, output)}
  </div>`
  const above = html`<p class="crumb"><a href="/sessions">Sessions</a></p>`
  const page = { title: `Session ${id}`, section: 'sessions', script: 'ops.js', above }
  return contentView(page, content)
}

/** The reply to Stop: htmx replaces the head alone, and the output goes on. */
export function stopView(shown: ShownSession): View {
  return { ...sessionView(shown), fragment: () => sessionHead(shown) }
}

/** A tool call as a whole, on a page of its own or in the place of the shortened one. */
export function callView({ id }: Pick<Session, 'id'>, call: Call): View {
  const title = `Session ${id}, tool call ${call.number}`
  const above = html`<p class="crumb"><a href="/sessions/${id}">Session ${id}</a></p>
    <h1>${title}</h1>`
  return contentView({ title, section: 'sessions', above }, callBlock(id, call, true))
}

/** What came of it, what was asked, and the chain. */
export function sessionHead(shown: ShownSession): Html {
  const { session, events, chain } = shown
  return html`<div id="session-head">
    ${titleLine(shown)} ${outcomeSection(shown)} ${askedSection(shown)}
    ${
      chain.length > 1 &&
      section(
        'chain-title',
        'Escalation chain, oldest first',
        html`${sessionTable('chain-rows', 'Sessions of the escalation chain', chain, session.id)}
          <p class="muted">Cost of the chain: ${costText(session.chain_cost)}</p>`,
      )
    }
    ${
      events.length > 0 &&
      section(
        'events-title',
        'Events',
        eventTable('event-rows', 'Events of the session, newest first', events, {
          isOfSession: true,
        }),
      )
    }
  </div>`
}

function titleLine({ session, fault, isAsked = false }: ShownSession): Html {
  const { id, status } = session
  const isRunning = status === 'running'
  return html`${refusal({ id: 'stop', fault })}
    <div class="title-line">
      <h1>Session ${id}</h1>
      <p role="status" id="session-status">
        ${statusBadge(status)} ${isAsked && isRunning && html`<span>stopping…</span>`}
      </p>
      ${
        isRunning &&
        postForm(
          { action: `/sessions/${id}/stop`, target: '#session-head' },
          submit(`Stop session ${id}`, { class: 'danger', id: 'stop' }),
        )
      }
    </div>`
}

const TRIGGERS: Readonly<Record<Trigger, string>> = {
  scheduled: 'Started on schedule',
  manual: 'Started by hand',
  api: 'Started by the API',
  escalation: 'Escalated',
  alert: 'Started by an alert',
}

function askedSection({ session, alert }: ShownSession): Html {
  const { trigger, started_at, tier, model, prompt_text, parent_session_id: parent } = session
  const prompt =
    prompt_text === null
      ? html`<p>Everything: it checks all that is in the inventory.</p>`
      : html`<div class="asked" role="region" aria-label="Prompt" tabindex="0">
          ${promptText(prompt_text)}
        </div>`
  const content = html`<p class="muted">
      ${TRIGGERS[trigger]}${parent !== null && html` from ${sessionLink(parent)}`},
      ${timeTag(started_at)}. Tier ${tier}, ${model === 'none' ? 'no model' : `model ${model}`}.
      ${alert !== undefined && html`Alert: <a href="/alerts/${alert.id}">${alert.title}</a>`}
    </p>
    ${prompt}`
  return section('asked-title', 'What was asked', content, { class: 'panel' })
}

const OUTCOMES: Readonly<Record<Status, string>> = {
  running: 'Running',
  completed: 'Completed',
  failed: 'Failed',
  timed_out: 'Timed out',
  escalated: 'Escalated to the next tier',
  stopped: 'Stopped',
}

function outcomeSection({ session, events, record }: ShownSession): Html | false {
  const { id, status, summary, ended_at, num_turns, exit_code } = session
  if (status === 'running') return false
  // An event says why a session did not end well.
  const start = `Session ${id} ${status}: `
  const why = events.find(({ message }) => message.startsWith(start))?.message.slice(start.length)
  const content = html`<p><strong>${outcomeSentence(session)}</strong></p>
    ${recordLine(session, record)}
    ${why !== undefined && html`<p class="remark" data-kind="error">${sentence(why)}</p>`}
    ${summary !== null && html`<div class="summary">${markdown(summary)}</div>`}
    ${facts({
      Ended: ended_at !== null && timeTag(ended_at, 'exact'),
      Turns: num_turns ?? false,
      'Exit code': exit_code === 0 ? false : (exit_code ?? false),
    })}`
  return section('outcome-title', 'Outcome', content, { class: 'panel' })
}

/**
 * What it did, whatever its summary says: a model may claim what a refused call did not do. Tool
 * calls are counted by the runner; an agent's may be known from its output alone.
 */
function recordLine({ tool_calls, model }: FoundSession, record: SessionRecord): Html | false {
  const { calls, errors, asked, operations } = record
  const called = Math.max(tool_calls ?? 0, calls)
  const missing = asked - operations
  // The probe has no model that could claim anything.
  if (model === 'none') return false
  const facts = [
    called === 0 ? 'no tool calls: nothing was checked' : countText(called, 'tool call'),
    `${countText(operations, 'operation')} ran`,
    errors > 0 && countText(errors, 'tool error'),
    missing > 0 &&
      `${countText(missing, 'operation')} ${missing === 1 ? 'was' : 'were'} asked for and did not run`,
  ]
  const isBad = errors > 0 || missing > 0
  return html`<p id="record" class="${isBad && 'refused'}">
    By the record: ${facts.filter((fact) => fact !== false).join(', ')}.
  </p>`
}

/** `Completed in 4.2 s, 3 turns, for $0.0021.` */
function outcomeSentence({ status, duration_ms, num_turns, cost_usd }: FoundSession): string {
  const how = status === 'completed' ? 'in' : 'after'
  const parts = [
    duration_ms === null
      ? OUTCOMES[status]
      : `${OUTCOMES[status]} ${how} ${durationText(duration_ms)}`,
    num_turns !== null && countText(num_turns, 'turn'),
    cost_usd !== null && `for ${costText(cost_usd)}`,
  ]
  return `${parts.filter((part) => part !== false).join(', ')}.`
}

/** The output line by line: live while the session runs. */
function linesSection(
  { session }: ShownSession,
  { lines, atEnd }: { lines: readonly Line[]; atEnd: boolean },
): Html {
  const { id, status } = session
  const first = lines[0]?.seq ?? 1
  const last = lines.at(-1)?.seq ?? 0
  const isRunning = status === 'running'
  const isLive = isRunning && atEnd
  const nothing = isRunning ? 'No output yet.' : 'No output, or retention has removed it.'
  const newest = isRunning ? `/sessions/${id}` : `/sessions/${id}?lines=1`
  const title = html`Output <span class="muted">(times in <span data-zone>UTC</span>)</span>`
  const content = html`${!isRunning && nextLink(`/sessions/${id}`, 'Output as a story')}
    ${first > 1 && nextLink(`/sessions/${id}?before=${first}`, 'Earlier lines')}
    <div
      id="lines"
      class="output"
      role="log"
      aria-live="off"
      aria-labelledby="output-title"
      tabindex="0"
      ${isLive && html`data-stream="/sessions/${id}/stream" data-last="${last}"`}
    >
      ${lines.map(lineRow)}
    </div>
    ${lines.length === 0 && html`<p class="muted" id="no-lines">${nothing}</p>`}
    ${!atEnd && nextLink(newest, 'Newest lines')}
    ${isLive && html`<noscript><p class="muted">Reload the page to see more lines.</p></noscript>`}
    <template id="line-row">${lineRow({ seq: 0, at: new Date(0), kind: '', text: '' })}</template>`
  return section('output-title', title, content, {}, isLive && LIVE_STATE)
}

const LIVE_STATE = html`<p class="actions js-only">
  <span id="live-state" class="muted" role="status">connecting…</span>
  <label class="choice"><input type="checkbox" id="follow" checked /> Follow</label>
</p>`

function lineRow({ seq, at, kind, text }: Line): Html {
  const clock = at.toISOString().slice(11, 19)
  return html`<p class="line" data-seq="${seq}" data-kind="${kind}" title="${at.toISOString()}">
    <time class="at" datetime="${at.toISOString()}" data-clock>${clock}</time>
    <span class="kind">${kind}</span>
    <span class="said">${text}</span>
  </p>`
}
