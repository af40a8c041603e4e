import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import { field, postForm, refusal, select, submitLine } from '../form.ts'
import { namedRows, section } from '../parts.ts'
import { assistantsFragment, type AssistantsView } from './assistants/assistants.ts'

/** What `/config` shows. */
export interface ShownConfig extends AssistantsView {
  /** The configuration as it runs, by name. */
  values: Readonly<Record<string, string>>
  form: FormState
}

const READ_ONLY = ['max_tier', 'state_dir', 'results_dir', 'repos_dir']

const DRY_RUN = [
  ['false', 'Off: operations are run'],
  ['true', 'On: operations are only recorded'],
] as const

/** `/config`: what can be changed while the program runs, and what it was started with. */
export function configPage(shown: ShownConfig): Page {
  const fixed = READ_ONLY.map((name) => [name, shown.values[name]])
  const rows = html`<p class="muted">Set by flags, environment or env file.</p>
    ${namedRows('Configuration, read-only', ['Name', 'Value'], fixed)}`
  return {
    title: 'Config',
    section: 'config',
    body: html`<h1>Config</h1>
      ${configForm(shown)} ${assistantsFragment(shown)}
      ${section('fixed-title', 'Read-only', rows)}`,
  }
}

/** The form alone: the answer to `POST /config`. */
export function configForm({ form: state }: Pick<ShownConfig, 'form'>): Html {
  const form = { id: 'settings', ...state }
  const required = { required: true }
  const models = [1, 2, 3].map((tier) => {
    return field(form, `tier${tier}_model`, `Model of tier ${tier}`, required)
  })
  return postForm(
    { id: 'settings', class: 'panel stack', action: '/config', target: '#settings' },
    html`${refusal(form)}
    ${field(form, 'interval', 'Interval (seconds between scheduled sessions)', required)} ${models}
    ${select(form, 'dry_run', 'Dry run', DRY_RUN)} ${submitLine('Save config', 'save-config')}`,
  )
}
