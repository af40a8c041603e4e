import type { Replay } from '../../../db/hooks/replays.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState } from '../../../kernel/http/view.ts'
import { field, postForm, refusal, submit, type Form } from '../../form.ts'
import {
  attributes,
  countText,
  listTable,
  longText,
  saved,
  section,
  tableRow,
  timeTag,
} from '../../parts.ts'
import { answersForm } from './answers.ts'

/** What the page of an event shows of its replays. */
export interface ReplaysView {
  event: { id: number }
  /** Where it is sent when no target is given; null when the settings name none. */
  defaultTarget: string | null
  /** The newest replays, newest first. */
  replays: readonly Replay[]
  /** True right after a replay: the page says how the newest one ended. */
  isReplayed?: boolean
  /** The form that was just sent, with what was typed. */
  sent?: Partial<FormState>
}

/** Part of an event's page: the form that replays the event, and the results of its replays. */
export function replaySection(view: ReplaysView): Html {
  const { defaultTarget } = view
  const content = html`${replayForm(view)}
    <p id="target-hint" class="hint">
      Sends the stored bytes, signed again for a signed provider. ${targetHint(defaultTarget)}
    </p>
    ${replaysList(view)}`
  return section('replay-title', 'Replay', content, { id: 'replays' })
}

/** The field of a target, with what it may be. */
export function targetField(form: Form, { defaultTarget }: Pick<ReplaysView, 'defaultTarget'>) {
  return field(form, 'target_url', 'Target (URL)', {
    type: 'url',
    placeholder: defaultTarget ?? 'https://example.com/hook',
    required: defaultTarget === null,
    hint: targetHint(defaultTarget),
  })
}

function targetHint(defaultTarget: string | null): Html {
  return html`${defaultTarget !== null && html`Empty = the default target, <bdi>${defaultTarget}</bdi>. `}A
    private address must be the default target of the <a href="/settings">settings</a> or be listed
    in <code>HOOKS_REPLAY_TARGETS</code>.`
}

function replayForm({ event, defaultTarget, sent }: ReplaysView): Html {
  const form = { id: 'target', ...sent }
  const target = {
    id: 'target_url',
    type: 'url',
    placeholder: defaultTarget ?? 'https://example.com/hook',
    required: defaultTarget === null,
    'aria-describedby': 'target-hint',
  }
  return postForm(
    {
      id: 'replay',
      class: 'filter',
      action: `/log/${event.id}/replay`,
      target: '#replays',
    },
    html`${refusal(form)} ${field(form, 'target_url', 'Target (URL)', target)}
      <div class="actions">
        ${submit('Replay', { class: 'primary', id: 'replay-button' })}
        <a href="/log/${event.id}/edit">Edit and send…</a>
      </div>`,
  )
}

const COLUMNS = ['Target', 'Result', 'Answer', 'By', 'Time'] as const

/** More attempts are folded: the payload must not be far below them. */
const OPEN_ATTEMPTS = 3

/** The replays so far, newest first. */
export function replaysList(view: Pick<ReplaysView, 'event' | 'replays' | 'isReplayed'>): Html {
  const { event, replays, isReplayed = false } = view
  const [newest] = replays
  if (newest === undefined) {
    return html`<div id="attempts"><p class="muted">Not replayed yet.</p></div>`
  }
  const table = listTable({
    bodyId: 'attempt-rows',
    caption: 'Attempts to send this event on, newest first',
    columns: COLUMNS,
    kind: 'attempts',
    rows: replays.map((replay, at) => replayRow(replay, isReplayed && at === 0)),
  })
  const isOpen = isReplayed || replays.length <= OPEN_ATTEMPTS
  return html`<div id="attempts">
    ${isReplayed && outcomeLine(newest)}
    <details ${isOpen && 'open'}>
      <summary>
        ${countText(replays.length, 'attempt')}, newest ${newest.outcome} ${timeTag(newest.at)}
      </summary>
      ${table} ${answersForm(event.id, replays)}
    </details>
  </div>`
}

function replayRow(replay: Replay, isNew: boolean): Html {
  const { outcome, kind, target, at, detail, answer } = replay
  const look = outcome === 'delivered' ? 'verified' : 'bad'
  const row = tableRow(
    { 'data-attempt': replay.id, 'data-outcome': outcome },
    {
      type: html`<bdi>${target}</bdi>
        ${detail !== null && html`<span class="detail">${detail}</span>`}`,
      verify: html`<span class="badge ${look}">${outcome}</span>`,
      answered: answerText(replay),
      kind: kind === 'edited' ? 'replay, edited' : kind,
      when: timeTag(at),
    },
  )
  return html`${row} ${answer !== null && answerRow(answer, isNew)}`
}

/** The answer takes the whole width below its attempt. */
function answerRow(answer: string, open: boolean): Html {
  return html`<tr role="row" class="answer">
    <td role="cell" colspan="${COLUMNS.length}">
      <details${attributes({ open })}>
        <summary>What it answered</summary>
        ${longText('The beginning of the answer', answer)}
      </details>
    </td>
  </tr>`
}

/** Without a status, an event was given to a program. */
function answerText({ outcome, status, ms }: Replay): string {
  if (status !== null) return `${status} in ${ms} ms`
  return outcome === 'delivered' ? `exit 0 in ${ms} ms` : 'none'
}

function outcomeLine({ outcome, status, ms, detail }: Replay): Html {
  if (outcome === 'delivered') return saved(`Delivered: ${status} in ${ms} ms.`)
  const answer = status !== null && `the target answered ${status} in ${ms} ms`
  const reasons = [answer, detail].filter(Boolean).join('; ')
  return html`<p class="refused" role="status">Not delivered: ${reasons}.</p>`
}
