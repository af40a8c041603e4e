import { html, type Html } from '../../kernel/html.ts'
import type { FormState, View } from '../../kernel/http/view.ts'
import { field, postForm, refusal, select, submitLine } from '../form.ts'
import { namedRows, saved, section } from '../parts.ts'
import { opsView } from './layout.ts'

/** What `/config` shows. */
export interface ShownConfig {
  /** The configuration as it runs, by name. */
  values: Readonly<Record<string, string>>
  form: FormState
  isSaved: boolean
}

const READ_ONLY = ['max_tier', 'state_dir', 'results_dir', 'repos_dir']

const DRY_RUN = [
  ['false', 'Off: operations are run'],
  ['true', 'On: operations are only recorded'],
] as const

export function configView(shown: ShownConfig): View {
  const fixed = READ_ONLY.map((name) => [name, shown.values[name]])
  const rows = html`<p class="muted">Set by flags, environment or env file.</p>
    ${namedRows('Configuration, read-only', ['Name', 'Value'], fixed)}`
  return opsView('Config', configForm(shown), { below: section('fixed-title', 'Read-only', rows) })
}

function configForm({ form: state, isSaved }: ShownConfig): Html {
  const form = { id: 'settings', ...state }
  const required = { required: true }
  const models = [1, 2, 3].map((tier) => {
    return field(form, `tier${tier}_model`, `Model of tier ${tier}`, required)
  })
  return postForm(
    { id: 'settings', class: 'panel stack', action: '/config', target: '#settings' },
    html`${isSaved && saved('Saved, and in force from now on.')} ${refusal(form)}
    ${field(form, 'interval', 'Interval (seconds between scheduled sessions)', required)} ${models}
    ${select(form, 'dry_run', 'Dry run', DRY_RUN)} ${submitLine('Save config', 'save-config')}`,
  )
}
