import type { SecretName } from '../../db/hooks/providers.ts'
import type { RejectionCount } from '../../db/hooks/rejections.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { AlarmKind } from '../../services/hooks/alarms.ts'
import type { ProviderStatus } from '../../services/hooks/providers.ts'
import { postForm, submit } from '../form.ts'
import { disclosed, fact, saved, breakable, timeTag } from '../parts.ts'
import { alarmBadges, trustBadge } from './layout.ts'
import { logUrl } from './log.ts'

/** One provider as its card on `/providers` shows it. */
export interface ProviderCard {
  readonly status: ProviderStatus
  readonly recent_count: number
  readonly last_event_at: Date | null
  readonly rejections: RejectionCount | null
  /** Full URL a sender posts to. */
  readonly url: string | null
  /** Environment variable that holds a signed provider's secret. */
  readonly variable: string | null
  /**
   * Which secret the newest verified delivery had; null when none had one of the present secrets.
   */
  readonly lastSecret: { readonly secret: SecretName; readonly at: Date } | null
  /** Until when the previous secret is accepted as well; null when it is not. */
  readonly previousUntil: Date | null
  /** How long a rotated secret may be accepted beside the new one, shortest first. */
  readonly overlaps: readonly {
    readonly seconds: number
    readonly text: string
    readonly chosen: boolean
  }[]
  readonly alarm: AlarmView
}

/** A provider's alarms: what is set (null: off), and what fires. */
interface AlarmView {
  /** Such as `15m`. */
  readonly interval: string | null
  readonly burst: number | null
  readonly firing: readonly AlarmKind[]
  /** True right after saving. */
  readonly saved: boolean
}

/**
 * One provider: what it is, where it sends to, whether it may. It is also the answer to
 * `POST /providers/{name}/enabled`, which htmx puts in place of the card; the switch keeps its id,
 * and with it the focus.
 */
export function providerCard(card: ProviderCard): Html {
  const { name, family, trust_mode } = card.status
  const key = encodeURIComponent(name)
  return html`<article class="card panel" id="provider-${key}" data-provider="${name}">
    <div class="title-line">
      <h2 id="name-${key}">${breakable(name)}</h2>
      ${toggle(card, key)}
    </div>
    <p class="badges">${trustBadge(trust_mode)} ${alarmBadges(card.alarm.firing)}</p>
    ${card.status.secret_status === 'missing' && missingSecret(card)}
    ${trust_mode === 'open' && openWarning()}
    <dl class="facts">
      ${fact('Family', family)} ${card.url !== null && fact('URL', html`<code>${card.url}</code>`)}
      ${card.status.path !== null && fact('Path', html`<code>${card.status.path}</code>`)}
      ${card.status.channel !== null && fact('Channel', html`<code>${card.status.channel}</code>`)}
      ${fact('Secret', SECRETS[card.status.secret_status])}
      ${card.status.secret_status === 'configured' && secretFacts(card)}
      ${fact('Last 24 hours', html`<a href="${logUrl({ provider: name })}">${card.recent_count}</a>`)}
      ${fact('Last event', card.last_event_at === null ? 'never' : timeTag(card.last_event_at))}
      ${fact('Rejected', rejected(card))} ${fact('Alarms', alarms(card))}
    </dl>
    ${alarmForm(card, key)} ${name.includes(':') && changeForms(card, key)}
  </article>`
}

const SECRETS = {
  configured: 'configured',
  missing: 'missing',
  'none-by-design': 'none by design',
} as const

function toggle({ status }: ProviderCard, key: string): Html {
  // Without its secret a provider stays disabled; the card says what to do.
  const isStuck = status.secret_status === 'missing'
  const label = html`<span class="track" aria-hidden="true"></span
    >${status.enabled ? 'Enabled' : 'Disabled'}`
  return postForm(
    { action: `/providers/${key}/enabled`, target: 'closest article' },
    submit(label, {
      id: `toggle-${key}`,
      class: 'switch',
      role: 'switch',
      'aria-checked': status.enabled ? 'true' : 'false',
      'aria-labelledby': `name-${key} toggle-${key}`,
      name: 'enabled',
      value: status.enabled ? 'false' : 'true',
      disabled: isStuck,
    }),
  )
}

/** During a rotation the operator waits for the sender to use the new secret. */
function secretFacts({ lastSecret, previousUntil }: ProviderCard): Html {
  const used =
    lastSecret === null ? 'none yet' : html`the ${lastSecret.secret} one, ${timeTag(lastSecret.at)}`
  return html`${fact('Matched last', used)}
  ${previousUntil !== null && fact('Previous until', timeTag(previousUntil))}`
}

function missingSecret({ variable, status }: ProviderCard): Html {
  return html`<p class="note">
    ${
      variable === null
        ? MISSING[status.trust_mode === 'signed' ? 'signed' : 'token']
        : html`Set <code>${variable}</code> to the secret that the sender signs with; the provider
            is then enabled.`
    }
  </p>`
}

const MISSING = {
  token: 'There is no token: make one by rotating.',
  signed: html`Its secret can't be read: set <code>GATEHOUSE_SECRET_KEY</code> to the key that it
    was stored with, or make a new secret by rotating.`,
} as const

function openWarning(): Html {
  return html`<p class="note">
    Open: whoever reaches the URL may send. For trusted networks only.
  </p>`
}

function alarms({ alarm }: ProviderCard): string {
  const { interval, burst } = alarm
  const set = [
    interval !== null && `silent after ${interval}`,
    burst !== null && `${burst} ${burst === 1 ? 'refusal' : 'refusals'} in 5 minutes`,
  ].filter((text) => text !== false)
  return set.length === 0 ? 'off' : set.join('; ')
}

function rejected({ status, rejections }: ProviderCard): Printable {
  if (rejections === null || rejections.total === 0) return 'none'
  return html`<a href="${logUrl({ provider: status.name, rejected: true })}">${rejections.total}</a>
    ${rejections.last_reason !== null && html`<span>(last: ${rejections.last_reason})</span>`}`
}

/**
 * The form that sets a provider's alarms; open right after it was saved, so that the focus stays.
 */
function alarmForm({ alarm, status }: ProviderCard, key: string): Html {
  const proven = status.secret_status !== 'none-by-design'
  const form = postForm(
    { class: 'stack', action: `/providers/${key}/alarm`, target: 'closest article' },
    html`${alarm.saved && saved('Saved.')}
      <p class="hint">
        Shown here and on the dashboard, in <code>/metrics</code> and <code>/healthz</code>.
      </p>
      <label>
        An event at least every
        <input
          name="expected_interval"
          id="interval-${key}"
          value="${alarm.interval ?? ''}"
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
            value="${alarm.burst ?? ''}"
            placeholder="off"
            pattern="\\d{1,7}"
            inputmode="numeric"
            title="How many deliveries with a wrong signature or token raise the alarm; empty = off"
            autocomplete="off"
          />
        </label>`
      }
      <p>
        ${submit(html`Save alarms <span class="hidden">of ${status.name}</span>`, { id: `alarm-${key}` })}
      </p>`,
  )
  return disclosed('Alarms…', form, { open: alarm.saved })
}

const REMOVED_WEBHOOK = 'Its sender is refused from then on.'
const REMOVED_QUEUE =
  'It is not read from then on; while HOOKS_QUEUE_CHANNELS names it, the next start adds it again.'

/** What one stray click must not do. */
function changeForms(card: ProviderCard, key: string): Html {
  const { status } = card
  const rotates = status.trust_mode === 'token' || status.trust_mode === 'signed'
  const removed = status.family === 'queue' ? REMOVED_QUEUE : REMOVED_WEBHOOK
  const confirm = `Remove ${status.name}? ${removed} Its events stay.`
  const removal = postForm(
    { action: `/providers/${key}/remove`, target: '#providers', confirm },
    html`<p>${removed} Its events stay in the log.</p>
      ${submit('Remove provider', { class: 'danger' })}`,
  )
  return disclosed(
    rotates ? 'Rotate or remove…' : 'Remove…',
    html`${rotates && rotateForm(card, key)} ${removal}`,
  )
}

function rotateForm({ status, overlaps }: ProviderCard, key: string): Html {
  return postForm(
    { class: 'stack', action: `/providers/${key}/rotate`, target: '#providers' },
    html`<p>A new secret is made and shown once.</p>
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
      <p>${submit('Rotate secret', {})}</p>`,
  )
}

/** Where the sender makes the signing secret, it is pasted here. */
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
