import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import { checkbox, field, postForm, refusal, select, submit, submitLine } from '../form.ts'
import { namedRows, section } from '../parts.ts'
import { assistantsFragment, type AssistantsView } from './assistants/assistants.ts'

/** What `/config` shows. */
export interface ShownConfig extends AssistantsView {
  /** The configuration as it runs, by name. */
  values: Readonly<Record<string, string>>
  form: FormState
  /** Names of all services, and of those that the status page shows. */
  services: readonly string[]
  shownServices: readonly string[]
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
      ${configForm(shown)} ${statusForm(shown)} ${assistantsFragment(shown)}
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

/** Which services anybody may see at `/status`: the answer to `POST /config/status`. */
export function statusForm({ services, shownServices }: ShownConfig): Html {
  const isOn = shownServices.length > 0
  const boxes = services.map((name, at) => {
    const own = { value: name, checked: shownServices.includes(name), id: `status-${at}` }
    return checkbox({ id: 'status' }, 'services', html`<bdi>${name}</bdi>`, own)
  })
  const content = html`<p>
      Anybody may see at <a href="/status">/status</a> whether these services are up.
      ${!isOn && 'No service is chosen: the page is off.'}
    </p>
    ${boxes.length === 0 ? html`<p class="muted">No service has checks yet.</p>` : boxes}
    ${boxes.length > 0 && html`<p>${submit('Save status page', { id: 'save-status' })}</p>`}`
  return postForm(
    { id: 'status-page', class: 'panel stack', action: '/config/status', target: '#status-page' },
    html`<h2>Status page</h2>
      ${content}`,
  )
}
