import { html, type Html, type Printable } from '../../kernel/html.ts'
import { timeTag } from '../time.ts'
import { trustBadge } from './badges.ts'
import { logUrl } from './log-filter.ts'
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
      <h2 id="name-${key}">${name}</h2>
      ${toggle(card, key)}
    </div>
    <p class="badges">${trustBadge(trust_mode)}</p>
    ${card.status.secret_status === 'missing' && missingSecret(card)}
    ${trust_mode === 'open' && openWarning()}
    <dl class="facts">
      ${fact('Family', family)} ${card.url !== null && fact('URL', html`<code>${card.url}</code>`)}
      ${card.status.path !== null && fact('Path', html`<code>${card.status.path}</code>`)}
      ${card.status.channel !== null && fact('Channel', html`<code>${card.status.channel}</code>`)}
      ${fact('Secret', SECRETS[card.status.secret_status])}
      ${fact('Last 24 hours', html`<a href="${logUrl({ provider: name })}">${card.recent_count}</a>`)}
      ${fact('Last event', card.last_event_at === null ? 'never' : timeTag(card.last_event_at))}
      ${fact('Rejected', rejected(card))}
    </dl>
    ${name.includes(':') && changes(card, key)}
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

function fact(term: string, value: Printable): Html {
  return html`<div>
    <dt>${term}</dt>
    <dd>${value}</dd>
  </div>`
}

function missingSecret({ variable }: ProviderCard): Html {
  return html`<p class="note">
    ${
      variable === null
        ? 'There is no secret: make one by rotating.'
        : html`Set <code>${variable}</code> to the secret that the sender signs with; the provider
            is then enabled.`
    }
  </p>`
}

function openWarning(): Html {
  return html`<p class="note">
    Open: whoever reaches the URL may send. For trusted networks only.
  </p>`
}

function rejected({ status, rejections }: ProviderCard): Printable {
  if (rejections === null || rejections.total === 0) return 'none'
  return html`<a href="${logUrl({ provider: status.name, rejected: true })}">${rejections.total}</a>
    ${rejections.last_reason !== null && html`<span>(last: ${rejections.last_reason})</span>`}`
}

const REMOVED_WEBHOOK = 'Its sender is refused from then on.'
const REMOVED_QUEUE =
  'It is not read from then on; while HOOKS_QUEUE_CHANNELS names it, the next start adds it again.'

/** What one stray click must not do stands behind a disclosure. */
function changes({ status }: ProviderCard, key: string): Html {
  const rotates = status.trust_mode === 'token' || status.trust_mode === 'signed'
  const removed = status.family === 'queue' ? REMOVED_QUEUE : REMOVED_WEBHOOK
  return html`<details class="changes">
    <summary>${rotates ? 'Rotate or remove…' : 'Remove…'}</summary>
    ${
      rotates &&
      html`<form
        method="post"
        action="/providers/${key}/rotate"
        hx-post="/providers/${key}/rotate"
        hx-target="#providers"
        hx-swap="outerHTML"
      >
        <p>A new secret is made and shown once. The present one stops working at once.</p>
        <button type="submit">Rotate secret</button>
      </form>`
    }
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
