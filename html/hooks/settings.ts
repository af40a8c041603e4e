import type { Settings } from '../../db/hooks/settings.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import { hooksPage } from './layout.ts'
import { pairsTable } from '../table.ts'
import { endpointsFragment, type EndpointsView } from './endpoints.ts'
import { forwardersFragment, type ForwardersView } from './forwarders.ts'
import type { SettingsView } from './views.ts'

/**
 * `/settings`: what can be changed while the program runs, and what it was started with. `typed` are
 * the fields of a form that was refused: they stand in it again.
 */
export function settingsPage(
  view: SettingsView,
  parts: SettingsParts,
  typed?: URLSearchParams,
): Html {
  return hooksPage({
    title: 'Settings',
    section: 'settings',
    body: html`<h1>Settings</h1>
      ${settingsForm(view, typed)} ${endpointsFragment(parts.endpoints)}
      ${forwardersFragment(parts.forwarders)} ${configuration(view.configuration)}`,
  })
}

/** What stands on the page beside the settings, with forms of its own. */
export interface SettingsParts {
  readonly endpoints: EndpointsView
  readonly forwarders: ForwardersView
}

/** The form alone: the answer to `POST /settings`, saved or refused. */
export function settingsForm(view: SettingsView, typed?: URLSearchParams): Html {
  const { saved, refused } = view
  return html`<form
    id="settings"
    class="panel stack"
    method="post"
    action="/settings"
    hx-post="/settings"
    hx-swap="outerHTML"
  >
    ${saved && html`<p class="saved" role="status">Saved. Old events are pruned accordingly.</p>`}
    ${
      refused !== null &&
      !GROUPS.some(([, fields]) => fields.some(({ name }) => name === refused.field)) &&
      html`<p class="refused" role="alert">${refused.message}</p>`
    }
    ${GROUPS.map(
      ([title, fields]) =>
        html`<fieldset>
          <legend>${title}</legend>
          ${fields.map((field) => input(field, view, typed))}
        </fieldset>`,
    )}
    <p><button type="submit" class="primary" id="save-settings">Save settings</button></p>
  </form>`
}

interface Field {
  readonly name: keyof Settings
  readonly label: string
  readonly hint: string
  /** Bounds of a number; null for a URL. */
  readonly limits: Html | null
}

const GROUPS: readonly (readonly [title: string, fields: readonly Field[]])[] = [
  [
    'Retention',
    [
      {
        name: 'retention_max_age_days',
        label: 'Keep events for (days)',
        hint: '0 = no limit',
        limits: html`min="0" max="36500"`,
      },
      {
        name: 'retention_max_rows',
        label: 'Keep at most (events)',
        hint: '0 = no limit',
        limits: html`min="0" max="2147483647"`,
      },
    ],
  ],
  [
    'Live stream',
    [
      {
        name: 'sse_retry_ms',
        label: 'Reconnect after (milliseconds)',
        hint: 'How long a browser waits before it opens a broken stream again; at least 250',
        limits: html`min="250" max="3600000"`,
      },
    ],
  ],
  [
    'Replay',
    [
      {
        name: 'replay_default_target',
        label: 'Default target (URL)',
        hint: 'Where an event is replayed to when no target is given; empty = none',
        limits: null,
      },
    ],
  ],
]

function input(
  { name, label, hint, limits }: Field,
  { settings, refused }: SettingsView,
  typed: URLSearchParams | undefined,
): Html {
  const message = refused?.field === name ? refused.message : null
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <input
      id="${name}"
      name="${name}"
      type="${limits === null ? 'url' : 'number'}"
      value="${typed?.get(name) ?? settings[name]}"
      ${limits ?? html`placeholder="https://example.com/hook" autocomplete="off"`}
      ${limits !== null && html`required`}
      aria-describedby="${name}-hint ${message !== null && `${name}-refused`}"
      ${message !== null && html`aria-invalid="true" autofocus`}
    />
    <p id="${name}-hint" class="hint">${hint}</p>
    ${message !== null && html`<p id="${name}-refused" class="refused">${message}</p>`}
  </div>`
}

function configuration(lines: SettingsView['configuration']): Html {
  return html`<section aria-labelledby="configuration-title">
    <h2 id="configuration-title">Configuration</h2>
    <p class="muted">Set by flags, environment or env file; shown without secrets.</p>
    ${pairsTable('Configuration, read-only', 'Variable', lines.map(shownLine))}
  </section>`
}

function shownLine([variable, value]: readonly [string, string]): readonly [string, Printable] {
  return [variable, value === '' ? html`<span class="muted">unset</span>` : value]
}
