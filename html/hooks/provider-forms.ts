import { html, type Html } from '../../kernel/html.ts'
import type { ProviderCard } from './views.ts'

/** The form that sets a provider's alarms; open right after it was saved, so that the focus stays. */
export function alarmForm(card: ProviderCard, key: string): Html {
  const { interval, burst, saved } = card.alarm
  const proven = card.status.secret_status !== 'none-by-design'
  return html`<details class="changes" ${saved && html`open`}>
    <summary>Alarms…</summary>
    <form
      class="stack"
      method="post"
      action="/providers/${key}/alarm"
      hx-post="/providers/${key}/alarm"
      hx-target="closest article"
      hx-swap="outerHTML"
    >
      ${saved && html`<p class="saved" role="status">Saved.</p>`}
      <p class="hint">
        Shown here and on the dashboard, in <code>/metrics</code> and <code>/healthz</code>.
      </p>
      <label>
        An event at least every
        <input
          name="expected_interval"
          id="interval-${key}"
          value="${interval ?? ''}"
          placeholder="off"
          pattern="0|\\d{1,9}[smhd]"
          title="A number with s, m, h or d, such as 90s, 15m, 24h or 7d; empty = off"
          autocomplete="off"
          autocapitalize="off"
        />
      </label>
      ${
        proven &&
        html`<label>
          Refusals in 5 minutes
          <input
            name="rejection_burst"
            id="burst-${key}"
            value="${burst ?? ''}"
            placeholder="off"
            pattern="\\d{1,7}"
            inputmode="numeric"
            title="How many deliveries with a wrong signature or token raise the alarm; empty = off"
            autocomplete="off"
          />
        </label>`
      }
      <p>
        <button type="submit" id="alarm-${key}">
          Save alarms <span class="hidden">of ${card.status.name}</span>
        </button>
      </p>
    </form>
  </details>`
}

const REMOVED_WEBHOOK = 'Its sender is refused from then on.'
const REMOVED_QUEUE =
  'It is not read from then on; while HOOKS_QUEUE_CHANNELS names it, the next start adds it again.'

/** What one stray click must not do stands behind a disclosure. */
export function changeForms(card: ProviderCard, key: string): Html {
  const { status } = card
  const rotates = status.trust_mode === 'token' || status.trust_mode === 'signed'
  const removed = status.family === 'queue' ? REMOVED_QUEUE : REMOVED_WEBHOOK
  return html`<details class="changes">
    <summary>${rotates ? 'Rotate or remove…' : 'Remove…'}</summary>
    ${rotates && rotateForm(card, key)}
    <form
      method="post"
      action="/providers/${key}/remove"
      hx-post="/providers/${key}/remove"
      hx-target="#providers"
      hx-swap="outerHTML"
      hx-confirm="Remove ${status.name}? ${removed} Its events stay."
    >
      <p>${removed} Its events stay in the log.</p>
      <button type="submit" class="danger">Remove provider</button>
    </form>
  </details>`
}

function rotateForm({ status, overlaps }: ProviderCard, key: string): Html {
  return html`<form
    class="stack"
    method="post"
    action="/providers/${key}/rotate"
    hx-post="/providers/${key}/rotate"
    hx-target="#providers"
    hx-swap="outerHTML"
  >
    <p>A new secret is made and shown once.</p>
    <label>
      The present one is accepted
      <select name="overlap">
        ${overlaps.map(
          ({ seconds, text, chosen }) =>
            html`<option value="${seconds}" ${chosen && html`selected`}>
              ${seconds === 0 ? 'no longer' : `for ${text} more`}
            </option>`,
        )}
      </select>
    </label>
    ${status.trust_mode === 'signed' && secretField(`secret-${key}`)}
    <p><button type="submit">Rotate secret</button></p>
  </form>`
}

/** Where a sender makes the signing secret, it is pasted here. */
export function secretField(id: string): Html {
  return html`<label for="${id}" class="given">
    Signing secret, when the sender made it (empty = one is made)
    <input
      name="secret"
      id="${id}"
      placeholder="whsec_…"
      autocomplete="off"
      autocapitalize="off"
      spellcheck="false"
    />
  </label>`
}
