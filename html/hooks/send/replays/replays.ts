import type { Receiver } from '../../../../db/hooks/send/forwarders.ts'
import type { Replay } from '../../../../db/hooks/send/replays.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState } from '../../../../kernel/http/view.ts'
import {
  field,
  hiddenField,
  postForm,
  refusal,
  submit,
  type FieldOptions,
  type Form,
} from '../../../form.ts'
import {
  attributes,
  breakable,
  copyBox,
  listTable,
  longText,
  polled,
  section,
  tableRow,
  timeTag,
} from '../../../parts.ts'
import { menu } from '../../../ways.ts'
import { answersForm } from './answers.ts'

/** Deliveries that the page of an event lists. */
export const LISTED_REPLAYS = 50

/** What the page of an event shows of its replays and deliveries. */
export interface ReplaysView {
  event: { id: number }
  /** Where it is sent when no target is given; null when the settings name none. */
  defaultTarget: string | null
  /** Where events were sent lately, newest first. */
  recentTargets: readonly string[]
  /** Programs on other machines that take events by `gatehouse forward`. */
  receivers: readonly Receiver[]
  /** Names of those that are connected to this process. */
  connected: readonly string[]
  /** A command that posts the event to a program on one's own machine. */
  laptop: string
  /** The newest deliveries, newest first, at most `LISTED_REPLAYS`. */
  replays: readonly Replay[]
  /** True right after a replay: the page says how the newest one ended. */
  isReplayed?: boolean
  /** The form that was just refused, with what was typed. */
  sent?: Partial<FormState>
}

/** The menu that sends the event again: to a known target, another one, or one's own machine. */
export function replayMenu(view: ReplaysView): Html {
  const { event, defaultTarget, recentTargets, sent, laptop } = view
  const others = recentTargets.filter((target) => target !== defaultTarget)
  const own = { id: 'replay-menu', open: sent !== undefined }
  const items = [
    defaultTarget !== null && targetButton(event.id, 'default', defaultTarget),
    ...others.map((target) => targetButton(event.id, 'recent', target)),
    ...view.receivers.map(({ name }) => receiverButton(view, name)),
    replayForm(view),
    html`<p><strong>My laptop</strong></p>
      <p class="hint">
        Run this there, with the port of your program. It posts this event, and then what the
        provider sends.
      </p>
      ${copyBox('forward-command', 'forward command', laptop)}`,
    { href: `/log/${event.id}/edit`, label: 'Edit and send…' },
  ]
  return menu(
    'Replay',
    items.filter((item) => item !== false),
    own,
  )
}

/** Sends the event to a target with one click; the default one is not named in the request. */
function targetButton(event: number, kind: 'default' | 'recent', target: string): Html {
  const word = kind === 'default' && html`<span class="muted">default</span>`
  return postForm(
    { action: `/log/${event}/replay`, target: '#event-body' },
    html`${kind === 'recent' && hiddenField('target_url', target)}
      <button class="plain"><bdi>${breakable(target)}</bdi> ${word}</button>`,
  )
}

/** Gives the event to a forwarder with one click. One that is away gets it when it connects. */
function receiverButton({ event, connected }: ReplaysView, name: string): Html {
  const state = connected.includes(name) ? 'connected' : 'when it connects'
  return postForm(
    { action: `/log/${event.id}/forward`, target: '#event-body' },
    html`${hiddenField('name', name)}
      <button class="plain">
        <bdi>${breakable(name)}</bdi> <span class="muted">${state}</span>
      </button>`,
  )
}

/** Part of an event's page: where it was sent, by people, destinations and forwarders. */
export function deliveriesSection(view: ReplaysView): Html {
  return section('deliveries-title', 'Deliveries', replaysList(view), { id: 'replays' })
}

/** The field of a target, with what it may be. */
export function targetField(
  form: Form,
  { defaultTarget }: Pick<ReplaysView, 'defaultTarget'>,
  own: FieldOptions = {},
): Html {
  return field(form, 'target_url', 'Target (URL)', {
    type: 'url',
    placeholder: defaultTarget ?? 'https://example.com/hook',
    required: defaultTarget === null,
    hint: targetHint(defaultTarget),
    ...own,
  })
}

function targetHint(defaultTarget: string | null): Html {
  return html`${defaultTarget !== null && html`Empty = the default target, <bdi>${defaultTarget}</bdi>. `}A
    private address must be the default target of the <a href="/settings">settings</a> or be listed
    in <code>HOOKS_REPLAY_TARGETS</code>.`
}

function replayForm(view: ReplaysView): Html {
  const { event, defaultTarget, sent } = view
  const form = { id: 'target', ...sent }
  const own = {
    id: 'target_url',
    hint: html`Sends the stored bytes, signed again for a signed provider.
    ${targetHint(defaultTarget)}`,
  }
  return postForm(
    { id: 'replay', action: `/log/${event.id}/replay`, target: '#event-body' },
    html`${refusal(form)} ${targetField(form, view, own)}
      <p class="actions">${submit('Replay', { class: 'primary', id: 'replay-button' })}</p>`,
  )
}

const COLUMNS = ['Target', 'Result', 'Answer', 'By', 'Time'] as const

/** The replays so far, newest first. */
export function replaysList(
  view: Pick<ReplaysView, 'event' | 'replays' | 'receivers' | 'isReplayed'>,
): Html {
  const { event, replays, receivers, isReplayed = false } = view
  const [newest] = replays
  const waiting = receivers.filter(({ waits }) => waits).map(({ name }) => name)
  const path = `/log/${event.id}?tab=deliveries`
  const own = attributes({
    id: 'attempts',
    ...(waiting.length > 0 && polled(path, 2, 'attempts')),
  })
  const next =
    waiting.length > 0 &&
    html`<p class="note" role="status"><bdi>${waiting.join(', ')}</bdi> gets it next.</p>`
  if (newest === undefined) {
    const none = waiting.length === 0 && html`<p class="muted">Not sent on yet.</p>`
    return html`<div${own}>${next} ${none}</div>`
  }
  const table = listTable({
    bodyId: 'attempt-rows',
    caption: 'Attempts to send this event on, newest first',
    columns: COLUMNS,
    kind: 'attempts',
    rows: replays.map((replay, at) => replayRow(replay, isReplayed && at === 0)),
  })
  return html`<div${own}>
    ${next} ${isReplayed && outcomeLine(newest)} ${table} ${answersForm(event.id, replays)}
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

/** The button that was pressed is gone with its menu: the outcome gets the focus. */
function outcomeLine(replay: Replay): Html {
  const { outcome, status, ms, detail } = replay
  const isDelivered = outcome === 'delivered'
  const own = {
    id: 'outcome',
    class: isDelivered ? 'saved' : 'refused',
    tabindex: -1,
    autofocus: true,
    role: 'status',
  }
  const answer = status !== null && `the target answered ${status} in ${ms} ms`
  const reasons = [answer, detail].filter(Boolean).join('; ')
  const text = isDelivered ? `Delivered: ${answerText(replay)}.` : `Not delivered: ${reasons}.`
  return html`<p${attributes(own)}>${text}</p>`
}
