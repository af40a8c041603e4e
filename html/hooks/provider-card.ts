import { html, type Html, type Printable } from '../../kernel/html.ts'
import { breakable, timeTag } from '../text.ts'
import { fact } from '../parts.ts'
import { alarmBadges, trustBadge } from './badges.ts'
import { logUrl } from './log-filter.ts'
import { alarmForm, changeForms } from './provider-forms.ts'
import type { ProviderCard } from './views.ts'

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
  // Without its secret a provider stays disabled whatever is wished; the card says what to do.
  const stuck = status.secret_status === 'missing'
  return html`<form
    method="post"
    action="/providers/${key}/enabled"
    hx-post="/providers/${key}/enabled"
    hx-target="closest article"
    hx-swap="outerHTML"
  >
    <button
      type="submit"
      id="toggle-${key}"
      class="switch"
      role="switch"
      aria-checked="${status.enabled ? 'true' : 'false'}"
      aria-labelledby="name-${key} toggle-${key}"
      name="enabled"
      value="${status.enabled ? 'false' : 'true'}"
      ${stuck && html`disabled`}
    >
      <span class="track" aria-hidden="true"></span>${status.enabled ? 'Enabled' : 'Disabled'}
    </button>
  </form>`
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
