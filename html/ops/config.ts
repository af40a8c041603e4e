import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { field, postForm, refusal, select, submit } from '../form.ts'
import { saved, pairsTable } from '../parts.ts'
import { opsPage } from './layout.ts'

/** What `/config` shows. */
export interface ConfigView {
  /** The configuration as it runs, by name. */
  readonly values: Readonly<Record<string, string>>
  readonly form: FormState
  readonly isSaved: boolean
}

const READ_ONLY = ['max_tier', 'state_dir', 'results_dir', 'repos_dir']

const DRY_RUN = [
  ['false', 'Off: operations are run'],
  ['true', 'On: operations are only recorded'],
] as const

export function configPage(view: ConfigView): Html {
  const fixed = READ_ONLY.map((name) => [name, view.values[name]] as const)
  return opsPage({
    title: 'Config',
    section: 'config',
    body: html`<h1>Config</h1>
      ${configForm(view)}
      <section aria-labelledby="fixed-title">
        <h2 id="fixed-title">Read-only</h2>
        <p class="muted">Set by flags, environment or env file.</p>
        ${pairsTable('Configuration, read-only', 'Name', fixed)}
      </section>`,
  })
}

export function configForm({ form: state, isSaved }: ConfigView): Html {
  const form = { id: 'settings', ...state }
  const required = { required: true }
  return postForm(
    { id: 'settings', class: 'panel stack', action: '/config', target: '#settings' },
    html`${isSaved && saved('Saved, and in force from now on.')} ${refusal(form)}
      ${field(form, 'interval', 'Interval (seconds between scheduled sessions)', required)}
      ${[1, 2, 3].map((tier) =>
        field(form, `tier${tier}_model`, `Model of tier ${tier}`, required),
      )}
      ${select(form, 'dry_run', 'Dry run', DRY_RUN)}
      <p class="field">${submit('Save config', { class: 'primary', id: 'save-config' })}</p>`,
  )
}
