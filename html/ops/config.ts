import { html, type Html } from '../../kernel/html.ts'
import { pairsTable } from '../table.ts'
import { opsPage } from './layout.ts'
import { refusedNote } from './parts.ts'

/** What `/config` shows. */
export interface ConfigView {
  /** The five values that can be changed, as they are or as they were typed. */
  readonly fields: Readonly<Record<ConfigField, string>>
  /** Those that only flags and environment set. */
  readonly fixed: readonly (readonly [name: string, value: string])[]
  readonly refused: string | null
  readonly saved: boolean
}

export const CONFIG_FIELDS = [
  'interval',
  'tier1_model',
  'tier2_model',
  'tier3_model',
  'dry_run',
] as const
export type ConfigField = (typeof CONFIG_FIELDS)[number]

export function configPage(view: ConfigView): Html {
  return opsPage({
    title: 'Config',
    section: 'config',
    body: html`<h1>Config</h1>
      ${configForm(view)}
      <section aria-labelledby="fixed-title">
        <h2 id="fixed-title">Read-only</h2>
        <p class="muted">Set by flags, environment or env file.</p>
        ${pairsTable('Configuration, read-only', 'Name', view.fixed)}
      </section>`,
  })
}

/** The form alone: the answer to `POST /config`. */
export function configForm({ fields, refused, saved }: ConfigView): Html {
  const wrong = (name: ConfigField): Html | false =>
    refused?.startsWith(`${name} `) === true &&
    html`aria-invalid="true" aria-describedby="config-refused"`
  return html`<form
    id="settings"
    class="panel stack"
    method="post"
    action="/config"
    hx-post="/config"
    hx-swap="outerHTML"
  >
    ${saved && html`<p class="saved" role="status">Saved, and in force from now on.</p>`}
    ${refusedNote(refused, 'config-refused')}
    <div class="field">
      <label for="interval">Interval (seconds between scheduled sessions)</label>
      <input
        id="interval"
        name="interval"
        type="number"
        min="1"
        max="2147483647"
        required
        value="${fields.interval}"
        ${wrong('interval')}
      />
    </div>
    ${([1, 2, 3] as const).map((tier) => {
      const name = `tier${tier}_model` as const
      return html`<div class="field">
        <label for="${name}">Model of tier ${tier}</label>
        <input
          id="${name}"
          name="${name}"
          required
          maxlength="200"
          autocomplete="off"
          value="${fields[name]}"
          ${wrong(name)}
        />
      </div>`
    })}
    <div class="field">
      <label for="dry_run">Dry run</label>
      <select id="dry_run" name="dry_run" ${wrong('dry_run')}>
        <option value="false" ${fields.dry_run === 'false' && html`selected`}>
          Off: operations are run
        </option>
        <option value="true" ${fields.dry_run === 'true' && html`selected`}>
          On: operations are only recorded
        </option>
      </select>
    </div>
    <p class="field">
      <button type="submit" class="primary" id="save-config">Save config</button>
    </p>
  </form>`
}
