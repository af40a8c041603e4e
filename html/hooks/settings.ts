import { html, type Html } from '../../kernel/html.ts'
import { layout } from '../layout.ts'
import { endpointsFragment, type EndpointsView } from './endpoints.ts'
import type { SettingsView } from './views.ts'

/**
 * `/settings`: what can be changed while the program runs, and what it was started with. `typed` are
 * the fields of a form that was refused: they stand in it again.
 */
export function settingsPage(
  view: SettingsView,
  endpoints: EndpointsView,
  typed?: URLSearchParams,
): Html {
  return layout({
    title: 'Settings',
    section: 'settings',
    body: html`<h1>Settings</h1>
      ${settingsForm(view, typed)} ${endpointsFragment(endpoints)}
      ${configuration(view.configuration)}`,
  })
}

/** The form alone: the answer to `POST /settings`, saved or refused. */
export function settingsForm(view: SettingsView, typed?: URLSearchParams): Html {
  const { settings, saved, refused } = view
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
      !FIELDS.includes(refused.field) &&
      html`<p class="refused" role="alert">${refused.message}</p>`
    }
    <fieldset>
      <legend>Retention</legend>
      ${field(view, typed, {
        name: 'retention_max_age_days',
        label: 'Keep events for (days)',
        hint: '0 = no limit',
        value: settings.retention_max_age_days,
        limits: html`min="0" max="36500"`,
      })}
      ${field(view, typed, {
        name: 'retention_max_rows',
        label: 'Keep at most (events)',
        hint: '0 = no limit',
        value: settings.retention_max_rows,
        limits: html`min="0" max="2147483647"`,
      })}
    </fieldset>
    <fieldset>
      <legend>Live stream</legend>
      ${field(view, typed, {
        name: 'sse_retry_ms',
        label: 'Reconnect after (milliseconds)',
        hint: 'How long a browser waits before it opens a broken stream again; at least 250',
        value: settings.sse_retry_ms,
        limits: html`min="250" max="3600000"`,
      })}
    </fieldset>
    <fieldset>
      <legend>Replay</legend>
      ${field(view, typed, {
        name: 'replay_default_target',
        label: 'Default target (URL)',
        hint: 'Where an event is replayed to when no target is given; empty = none',
        value: settings.replay_default_target ?? '',
        limits: null,
      })}
    </fieldset>
    <p><button type="submit" class="primary" id="save-settings">Save settings</button></p>
  </form>`
}

const FIELDS: readonly string[] = [
  'retention_max_age_days',
  'retention_max_rows',
  'sse_retry_ms',
  'replay_default_target',
]

interface Field {
  readonly name: string
  readonly label: string
  readonly hint: string
  readonly value: string | number
  /** Bounds of a number; null for a URL. */
  readonly limits: Html | null
}

function field(
  { refused }: SettingsView,
  typed: URLSearchParams | undefined,
  { name, label, hint, value, limits }: Field,
): Html {
  const message = refused?.field === name ? refused.message : null
  return html`<div class="field">
    <label for="${name}">${label}</label>
    <input
      id="${name}"
      name="${name}"
      type="${limits === null ? 'url' : 'number'}"
      value="${typed?.get(name) ?? value}"
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
    <table class="pairs">
      <caption class="hidden">
        Configuration, read-only
      </caption>
      <thead>
        <tr>
          <th scope="col">Variable</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        ${lines.map(
          ([variable, value]) =>
            html`<tr>
              <th scope="row">${variable}</th>
              <td>${value === '' ? html`<span class="muted">unset</span>` : value}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </section>`
}
