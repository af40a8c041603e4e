import type { Mute } from '../../../db/ops/watch/mutes.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import { field, postForm, refusal, submit, VERBATIM, type Form } from '../../form.ts'
import { contentView } from '../../layout.ts'
import { cards, section } from '../../parts.ts'
import { heldBackCard, heldBackFields } from '../layout.ts'

/** What `/mutes` shows. */
interface MutesView {
  mutes: readonly ShownMute[]
  form: FormState
  now: Date
}

interface ShownMute extends Mute {
  /** What is muted, in words. */
  scope: string
}

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
      mutes.map((mute) => heldBackCard('mute', mute, now)),
      'Nothing is muted.',
    )}
    ${section('new-mute-title', 'New mute', muteForm(form), { class: 'panel' })}
  </div>`
  return contentView({ title, section: 'checks', above }, content)
}

/** The form that mutes what is typed, or the check with this id. */
export function muteForm(state: FormState, check?: number): Html {
  const form = { id: 'mute-form', ...state }
  const what =
    check === undefined &&
    html`${field(form, 'service', 'Service (empty for everything)', VERBATIM)}
    ${field(form, 'check', 'Check (empty for all of the service)', VERBATIM)}`
  const place =
    check === undefined
      ? { action: '/mutes', target: '#mutes' }
      : { action: `/checks/${check}/mute`, target: '#check-page' }
  const button = check === undefined ? { class: 'primary' } : {}
  return postForm(
    { class: 'stack changes', ...place },
    html`${refusal(form)} ${what} ${heldBackFields(form, windowFields(form))}
      <p class="field">${submit('Mute', { ...button, id: 'add-mute' })}</p>`,
  )
}

/** The fields of a mute that comes back. */
function windowFields(form: Form): Html {
  return html`${field(form, 'every', 'Or every', {
    hint: 'Days and hours, such as sat,sun 02:00-04:00, mon-fri 22:00-06:00 or daily 03:00-03:30.',
  })}
  ${field(form, 'tz', 'Time zone', { hint: 'Of these hours, such as Europe/Berlin; UTC without it.' })}`
}
