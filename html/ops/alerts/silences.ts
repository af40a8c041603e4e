import type { Silence } from '../../../db/ops/alerts/silences.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import { field, postForm, refusal, submitLine, VERBATIM } from '../../form.ts'
import { contentView } from '../../layout.ts'
import { cards, section } from '../../parts.ts'
import { heldBackCard, heldBackFields } from '../layout.ts'

/** What `/silences` shows. */
interface SilencesView {
  silences: readonly ShownSilence[]
  form: FormState
  now: Date
}

interface ShownSilence extends Silence {
  /** What is silenced, in words. */
  scope: string
}

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
      silences.map((silence) => heldBackCard('silence', silence, now)),
      'No silences.',
    )}
    ${section('new-silence-title', 'New silence', silenceForm(form), { class: 'panel' })}
  </div>`
  return contentView({ title, section: 'alerts', above }, content)
}

function silenceForm(state: FormState): Html {
  const form = { id: 'silence-form', ...state }
  return postForm(
    { class: 'stack changes', action: '/silences', target: '#silences' },
    html`${refusal(form)}
    ${field(form, 'match', 'Labels', { ...VERBATIM, rows: 3, required: true, hint: MATCH_HINT })}
    ${heldBackFields(form)} ${submitLine('Silence', 'add-silence')}`,
  )
}
