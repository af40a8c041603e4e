import type { Silence } from '../../db/ops/silences.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, View } from '../../kernel/http/view.ts'
import { field, postForm, refusal, submit, submitLine, VERBATIM } from '../form.ts'
import { contentView } from '../layout.ts'
import { cards, section, timeTag } from '../parts.ts'

/** What `/silences` shows. */
export interface SilencesView {
  silences: readonly ShownSilence[]
  form: FormState
  now: Date
}

interface ShownSilence extends Silence {
  /** What is silenced, in words. */
  scope: string
}

const UTC = 'A time with its zone, such as 2027-01-31T12:00:00Z.'
const MATCH_HINT =
  'A line each, such as service=shop or alertname=Disk*. All must fit; * stands for anything.'

/** Silences, with a form that adds one. */
export function silencesView({ silences, form, now }: SilencesView): View {
  const title = 'Silences'
  const above = html`<p class="crumb"><a href="/alerts">Alerts</a> / silences</p>
    <h1>${title}</h1>
    <p class="muted">
      An alert that matches a silence is kept, and starts no session. When the silence ends, one
      that still fires is looked at again. <a href="/mutes">Mutes</a> are for our own checks.
    </p>`
  const content = html`<div id="silences">
    ${cards(
      silences.map((silence) => silenceCard(silence, now)),
      'No silences.',
    )}
    ${section('new-silence-title', 'New silence', silenceForm(form), { class: 'panel' })}
  </div>`
  return contentView({ title, section: 'alerts', above }, content)
}

function silenceCard(silence: ShownSilence, now: Date): Html {
  const { id, starts_at, ends_at, reason, author, scope } = silence
  const isOn = starts_at <= now
  const label = html`${isOn ? 'End now' : 'Cancel'} <span class="hidden">${scope}</span>`
  return html`<article class="panel card" aria-labelledby="silence-${id}">
    <div class="title-line">
      <h2 id="silence-${id}"><bdi>${scope}</bdi></h2>
      <span class="badge">${isOn ? 'silenced now' : 'to come'}</span>
    </div>
    <p><bdi>${reason}</bdi></p>
    <p class="muted">
      ${timeTag(starts_at, 'exact')} to ${timeTag(ends_at, 'exact')} · by <bdi>${author}</bdi>
    </p>
    ${postForm(
      { action: `/silences/${id}/delete`, target: '#silences' },
      submit(label, { id: `end-${id}` }),
    )}
  </article>`
}

function silenceForm(state: FormState): Html {
  const form = { id: 'silence-form', ...state }
  return postForm(
    { class: 'stack changes', action: '/silences', target: '#silences' },
    html`${refusal(form)}
    ${field(form, 'match', 'Labels', { ...VERBATIM, rows: 3, required: true, hint: MATCH_HINT })}
    ${field(form, 'for', 'For', { hint: 'Such as 90s, 15m, 24h or 7d; or say until when.' })}
    ${field(form, 'starts_at', 'From', { hint: `${UTC} Now without it.` })}
    ${field(form, 'ends_at', 'Until', { hint: UTC })}
    ${field(form, 'reason', 'Reason', { required: true })} ${submitLine('Silence', 'add-silence')}`,
  )
}
