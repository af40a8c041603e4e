import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import { field, postForm, refusal, submitLine } from '../form.ts'
import { disclosed, namedRows, section } from '../parts.ts'
import { endpointsFragment, type EndpointsView } from './agents/endpoints.ts'
import { forwardersFragment, type ForwardersView } from './send/forwarders.ts'

/** What `/settings` shows. */
export interface SettingsView extends EndpointsView, ForwardersView {
  /** The present settings, or what was typed into a refused form. */
  form: FormState
  /** General configuration, read-only: variable and value (never a secret). */
  configuration: readonly (readonly [string, string])[]
}

/** `/settings`: what can be changed while the program runs, and what it was started with. */
export function settingsPage(view: SettingsView): Page {
  return {
    title: 'Settings',
    section: 'settings',
    body: html`<h1>Settings</h1>
      ${settingsForm(view)} ${endpointsFragment(view)} ${forwardersFragment(view)}
      ${configuration(view.configuration)}`,
  }
}

/** The form alone: the answer to `POST /settings`. */
export function settingsForm(view: Pick<SettingsView, 'form'>): Html {
  const form = { id: 'settings', ...view.form }
  const number = (id: string, label: string, hint: string) => {
    return field(form, id, label, { id, hint, required: true, autocomplete: 'off' })
  }
  const retry = 'How long a browser waits before it opens a broken stream again; at least 250'
  return postForm(
    { id: 'settings', class: 'panel stack', action: '/settings' },
    html`${refusal(form)}
      <fieldset>
        <legend>Retention</legend>
        ${number('retention_max_age_days', 'Keep events for (days)', '0 = no limit')}
        ${number('retention_max_rows', 'Keep at most (events)', '0 = no limit')}
      </fieldset>
      <fieldset>
        <legend>Live stream</legend>
        ${number('sse_retry_ms', 'Reconnect after (milliseconds)', retry)}
      </fieldset>
      <fieldset>
        <legend>Replay</legend>
        ${field(form, 'replay_default_target', 'Default target (URL)', {
          id: 'replay_default_target',
          hint: 'Where an event is replayed to when no target is given; empty = none',
          type: 'url',
          placeholder: 'https://example.com/hook',
        })}
      </fieldset>
      ${submitLine('Save settings', 'save-settings')}`,
  )
}

/** The variables of this service; those of others and of the program fold. */
function configuration(lines: SettingsView['configuration']): Html {
  const own = lines.filter(([name]) => name.startsWith('HOOKS_'))
  const others = lines.filter((line) => !own.includes(line))
  const content = html`<p class="muted">
      Set by flags, environment or env file; shown without secrets.
    </p>
    ${variables('Configuration of webhooks, read-only', own)}
    ${disclosed(
      `Other variables (${others.length})…`,
      variables('Other configuration, read-only', others),
    )}`
  return section('configuration-title', 'Configuration', content)
}

function variables(caption: string, lines: SettingsView['configuration']): Html {
  const unset = html`<span class="muted">unset</span>`
  const rows = lines.map(([name, value]) => [name, value || unset])
  return namedRows(caption, ['Variable', 'Value'], rows)
}
