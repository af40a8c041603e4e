import type { Mute } from '../../db/ops/mutes.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, View } from '../../kernel/http/view.ts'
import { field, hiddenField, postForm, refusal, submit, submitLine, VERBATIM } from '../form.ts'
import { contentView } from '../layout.ts'
import { cards, section, timeTag } from '../parts.ts'

/** What `/mutes` shows. */
export interface MutesView {
  mutes: readonly ShownMute[]
  form: FormState
  now: Date
}

interface ShownMute extends Mute {
  /** What is muted, in words. */
  scope: string
}

const UTC = 'A time with its zone, such as 2027-01-31T12:00:00Z.'

/** Mutes and maintenance windows, with a form that adds one. */
export function mutesView({ mutes, form, now }: MutesView): View {
  const title = 'Mutes'
  const above = html`<p class="crumb"><a href="/checks">Checks</a> / mutes</p>
    <h1>${title}</h1>
    <p class="muted">
      Failures are not told while a check is muted. It is looked at all the same, and pages show
      what was found. <a href="/silences">Silences</a> are for alerts of other programs.
    </p>`
  const content = html`<div id="mutes">
    ${cards(
      mutes.map((mute) => muteCard(mute, now)),
      'Nothing is muted.',
    )}
    ${section('new-mute-title', 'New mute', muteForm(form), { class: 'panel' })}
  </div>`
  return contentView({ title, section: 'checks', above }, content)
}

function muteCard(mute: ShownMute, now: Date): Html {
  const { id, starts_at, ends_at, reason, author, scope } = mute
  const isOn = starts_at <= now
  const label = html`${isOn ? 'End now' : 'Cancel'} <span class="hidden">${scope}</span>`
  return html`<article class="panel card" aria-labelledby="mute-${id}">
    <div class="title-line">
      <h2 id="mute-${id}"><bdi>${scope}</bdi></h2>
      <span class="badge">${isOn ? 'muted now' : 'to come'}</span>
    </div>
    <p><bdi>${reason}</bdi></p>
    <p class="muted">
      ${timeTag(starts_at, 'exact')} to ${timeTag(ends_at, 'exact')} · by <bdi>${author}</bdi>
    </p>
    ${postForm(
      { action: `/mutes/${id}/delete`, target: '#mutes' },
      submit(label, { id: `end-${id}` }),
    )}
  </article>`
}

/** The form that mutes: what `scope` names, or what is typed. */
export function muteForm(
  state: FormState,
  scope?: Readonly<Record<'service' | 'check', string>>,
): Html {
  const form = { id: 'mute-form', ...state }
  const what =
    scope === undefined
      ? html`${field(form, 'service', 'Service (empty for everything)', VERBATIM)}
        ${field(form, 'check', 'Check (empty for all of the service)', VERBATIM)}`
      : html`${hiddenField('service', scope.service)} ${hiddenField('check', scope.check)}`
  const target = scope === undefined ? '#mutes' : '#check-page'
  return postForm(
    { class: 'stack changes', action: '/mutes', target },
    html`${refusal(form)} ${what}
    ${field(form, 'for', 'For', { hint: 'Such as 90s, 15m, 24h or 7d; or say until when.' })}
    ${field(form, 'from', 'From', { hint: `${UTC} Now without it.` })}
    ${field(form, 'until', 'Until', { hint: UTC })}
    ${field(form, 'reason', 'Reason', { required: true })} ${submitLine('Mute', 'add-mute')}`,
  )
}
