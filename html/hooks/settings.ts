import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { field, postForm, submit } from '../form.ts'
import { saved, pairsTable } from '../parts.ts'
import { endpointsFragment, type EndpointsView } from './endpoints.ts'
import { forwardersFragment, type ForwardersView } from './forwarders.ts'
import { hooksPage } from './layout.ts'

/** What the form of `/settings` and the table below it show. */
export interface SettingsView {
  /** The present settings, or what was typed into a refused form. */
  readonly form: FormState
  /** True right after saving. */
  readonly saved: boolean
  /** General configuration, read-only: variable and value (never a secret). */
  readonly configuration: readonly (readonly [string, string])[]
}

/** What stands on the page beside the settings, with forms of its own. */
export interface SettingsParts {
  readonly endpoints: EndpointsView
  readonly forwarders: ForwardersView
}

/** `/settings`: what can be changed while the program runs, and what it was started with. */
export function settingsPage(view: SettingsView, parts: SettingsParts): Html {
  return hooksPage({
    title: 'Settings',
    section: 'settings',
    body: html`<h1>Settings</h1>
      ${settingsForm(view)} ${endpointsFragment(parts.endpoints)}
      ${forwardersFragment(parts.forwarders)} ${configuration(view.configuration)}`,
  })
}

/** The form alone: the answer to `POST /settings`. */
export function settingsForm({ form: state, saved: isSaved }: SettingsView): Html {
  const form = { id: 'settings', messagesBelow: true, ...state }
  const own = (id: string, hint: string) => ({ id, hint, autocomplete: 'off' })
  const number = (id: string, hint: string) => ({ ...own(id, hint), required: true })
  const target = {
    ...own(
      'replay_default_target',
      'Where an event is replayed to when no target is given; empty = none',
    ),
    type: 'url',
    placeholder: 'https://example.com/hook',
  }
  const retry = 'How long a browser waits before it opens a broken stream again; at least 250'
  return postForm(
    { id: 'settings', class: 'panel stack', action: '/settings' },
    html`${isSaved && saved('Saved. Old events are pruned accordingly.')}
      <fieldset>
        <legend>Retention</legend>
        ${field(
          form,
          'retention_max_age_days',
          'Keep events for (days)',
          number('retention_max_age_days', '0 = no limit'),
        )}
        ${field(
          form,
          'retention_max_rows',
          'Keep at most (events)',
          number('retention_max_rows', '0 = no limit'),
        )}
      </fieldset>
      <fieldset>
        <legend>Live stream</legend>
        ${field(
          form,
          'sse_retry_ms',
          'Reconnect after (milliseconds)',
          number('sse_retry_ms', retry),
        )}
      </fieldset>
      <fieldset>
        <legend>Replay</legend>
        ${field(form, 'replay_default_target', 'Default target (URL)', target)}
      </fieldset>
      <p>${submit('Save settings', { class: 'primary', id: 'save-settings' })}</p>`,
  )
}

function configuration(lines: SettingsView['configuration']): Html {
  return html`<section aria-labelledby="configuration-title">
    <h2 id="configuration-title">Configuration</h2>
    <p class="muted">Set by flags, environment or env file; shown without secrets.</p>
    ${pairsTable('Configuration, read-only', 'Variable', lines.map(describeLine))}
  </section>`
}

function describeLine([variable, value]: readonly [string, string]): readonly [string, Printable] {
  return [variable, value === '' ? html`<span class="muted">unset</span>` : value]
}
