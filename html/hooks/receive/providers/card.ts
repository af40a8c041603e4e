import type { ProviderCard } from './shown.ts'
import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { ProviderRecovery } from '../../../../services/hooks/receive/recoveries/recoveries.ts'
import { field, postForm, refusal, submit, switchForm } from '../../../form.ts'
import { attributes, breakable, disclosed, facts, timeTag } from '../../../parts.ts'
import { alarmBadges, trustBadge } from '../../layout.ts'
import { logUrl } from '../../log-url.ts'
import { answerFacts, answerForm } from './answers.ts'
import { removalOf, rotationOf } from './rotation.ts'

/**
 * One provider: a row with its kind and its switch. It opens to all that is known and can be
 * changed, which htmx loads then: a page of many providers stays small.
 */
export function providerCard(card: ProviderCard): Html {
  const { name, trust_mode, open = false } = card
  const key = encodeURIComponent(name)
  const own = {
    id: `provider-${key}`,
    'data-provider': name,
    'data-find': `${name} ${trust_mode} ${card.family}`,
  }
  const path = `/providers?open=${key}`
  const load = {
    'hx-get': path,
    'hx-trigger': 'toggle once',
    'hx-target': 'find .card',
    'hx-swap': 'outerHTML',
  }
  const more = html`<p class="card actions"><a href="${path}#provider-${key}">Show all</a></p>`
  return html`<article class="openable" ${attributes(own)}>
    ${disclosed(summaryOf(card, key), open ? providerContent(card) : more, {
      class: undefined,
      ...(open ? { open } : load),
    })}
    ${providerToggle(card)}
  </article>`
}

/** The row while it is closed. */
function summaryOf(card: ProviderCard, key: string): Html {
  const { name, trust_mode, family, secret_status, last_event_at: last, senderTitle } = card
  const isMissing = secret_status === 'missing'
  const secret = secret_status === 'none-by-design' ? 'no secret' : `secret ${secret_status}`
  const title = html`<h2 id="name-${key}">
    ${breakable(name)} ${senderTitle !== null && html`<small class="muted">${senderTitle}</small>`}
  </h2>`
  if (isUnused(card)) {
    return html`${title}
      <span class="badges">${trustBadge(trust_mode)}</span>
      <span class="detail">${family} · ${asCode(card.path)}</span>
      <span class="detail">not set up: open it to set its secret</span>`
  }
  return html`${title}
    <span class="badges">${trustBadge(trust_mode)} ${alarmBadges(card.firing)}</span>
    <span class="detail"> ${family} · ${asCode(card.path ?? card.channel)} · ${secret} </span>
    <span class="detail">
      ${card.recent_count} in 24 hours · ${last === null ? 'no event yet' : timeTag(last)}
    </span>
    ${isMissing && missingSecret(card)}`
}

/** One that always exists, and that nobody has set up. */
export function isUnused({ variable, secret_status, isStored, ...card }: ProviderCard): boolean {
  const isNew = card.last_event_at === null && card.rejections === undefined
  return variable !== null && secret_status === 'missing' && !isStored && isNew
}

/** What a row opens to. */
export function providerContent(card: ProviderCard): Html {
  const { name, trust_mode, secret_status, last_event_at: last } = card
  const key = encodeURIComponent(name)
  return html`<div class="card">
    ${trust_mode === 'open' && openWarning(key)} ${isUnused(card) && missingSecret(card)}
    ${facts({
      Family: card.family,
      Scheme: card.scheme !== null && schemeText(card.scheme, card.schemeNote),
      URL: card.url !== null && html`<code>${breakable(card.url)}</code>`,
      Path: asCode(card.path),
      Channel: asCode(card.channel),
      ...answerFacts(card),
      ...expectedFacts(card),
      Secret: secretText(card),
      ...(secret_status === 'configured' && secretFacts(card)),
      'Last 24 hours': html`<a href="${logUrl({ provider: name })}">${card.recent_count}</a>`,
      'Last event': last === null ? 'never' : timeTag(last),
      Rejected: rejected(card),
      'At the sender': card.recoveries.length > 0 && card.recoveries.map(recovery),
      Alarms: alarms(card),
    })}
    ${rotationOf(card, key)} ${alarmForm(card, key)}
    ${name.startsWith('generic:') && answerForm(card, key)}
    ${name.includes(':') && removalOf(card, key)}
  </div>`
}

/**
 * Whether a provider may deliver. It is also the answer to `POST /providers/{name}/enabled`, which
 * htmx puts in its place; the switch keeps its id, and with it the focus.
 */
export function providerToggle({ name, enabled, secret_status }: ProviderCard): Html {
  const key = encodeURIComponent(name)
  const action = `/providers/${key}/enabled`
  // Without its secret a provider stays disabled; the row says what to do.
  return switchForm(key, enabled, { action, target: 'this' }, secret_status === 'missing')
}

/** The name of a scheme in the docs and in the command, and how it is weaker than others. */
function schemeText(scheme: string, note: string | null): Printable {
  return note === null ? scheme : `${scheme} (${note})`
}

/** What deliveries must have beside a right signature. */
function expectedFacts({ scheme_row: row }: ProviderCard) {
  const { topics, issuer, audience, subject } = row?.expected ?? {}
  const code = (text: string | undefined) => text !== undefined && asCode(text)
  return {
    Topics: topics !== undefined && asCode(topics.join(', ')),
    Issuer: code(issuer),
    Audience: code(audience),
    Subject: code(subject),
  }
}

/** During a rotation the operator waits for the sender to use the new secret. */
function secretFacts({ lastSecret, previous_until: end }: ProviderCard) {
  const used = lastSecret && html`the ${lastSecret.secret} one, ${timeTag(lastSecret.at)}`
  return {
    'Matched last': used ?? 'none yet',
    'Previous until': end !== null && timeTag(end),
  }
}

/** Where the secret of a provider that always exists comes from. */
function secretText(card: ProviderCard): Printable {
  const { secret_status, variable, isConfigured, isStored } = card
  if (variable === null || secret_status === 'missing') return secret_status.replaceAll('-', ' ')
  if (!isConfigured) return 'configured, set on this page'
  return html`configured by <code>${variable}</code>${
      isStored && ', which wins over the one that was set on this page'
    }`
}

function missingSecret({ variable, trust_mode, isStored }: ProviderCard): Html {
  if (variable === null || isStored) {
    return html`<span class="note">${MISSING[trust_mode] ?? ''}</span>`
  }
  return html`<span class="note">
    Set the secret that the sender signs with, below or as <code>${variable}</code>; the provider
    is then enabled.
  </span>`
}

const MISSING: Readonly<Record<string, Printable>> = {
  token: 'There is no token: make one by rotating.',
  signed: html`Its secret can't be read: set <code>GATEHOUSE_SECRET_KEY</code> to the key that it
    was stored with, or make a new secret by rotating.`,
}

function openWarning(key: string): Html {
  return html`<p class="note">
    Open: whoever reaches the URL may send.
    <a href="/providers/${key}/first">See what came, and verify it</a>
  </p>`
}

function asCode(text: string | null): Printable {
  return text !== null && html`<code>${text}</code>`
}

function alarms({ interval, rejection_burst: burst }: ProviderCard): string {
  const set = [
    interval !== null && `silent after ${interval}`,
    burst !== null && `${burst} ${burst === 1 ? 'refusal' : 'refusals'} in 5 minutes`,
  ]
  return set.filter(Boolean).join('; ') || 'off'
}

function rejected({ name, rejections }: ProviderCard): Printable {
  if (rejections === undefined || rejections.total === 0) return 'none'
  return html`<a href="${logUrl({ provider: name, rejected: '1' })}">${rejections.total}</a>
    ${rejections.last_reason !== null && html`<span>(last: ${rejections.last_reason})</span>`}`
}

function recovery({ source, at, text, problem }: ProviderRecovery): Html {
  return html`<p>
    <code>${source}</code>: ${text} ${problem !== null && html`<strong>${problem}</strong>`}
    (${timeTag(at)})
  </p>`
}

const BURST_TITLE =
  'How many deliveries with a wrong signature or token raise the alarm; empty = off'

/**
 * The form that sets a provider's alarms; open right after it was sent, so that the focus stays.
 */
function alarmForm(card: ProviderCard, key: string): Html {
  const { name, secret_status, interval, rejection_burst, alarms: sent } = card
  const label = html`Save alarms <span class="hidden">of ${name}</span>`
  const typed = {
    expected_interval: interval ?? '',
    rejection_burst: String(rejection_burst ?? ''),
  }
  const fields = { id: `alarms-${key}`, typed, ...sent }
  const form = postForm(
    { class: 'stack', action: `/providers/${key}/alarm`, target: 'closest article' },
    html`${refusal(fields)}
      <p class="hint">
        Shown here and on the dashboard, in <code>/metrics</code> and <code>/healthz</code>.
      </p>
      ${field(fields, 'expected_interval', 'An event at least every', {
        placeholder: 'off',
        pattern: '0|\\d{1,9}[smhd]',
        title: 'A number with s, m, h or d, such as 90s, 15m, 24h or 7d; empty = off',
        autocapitalize: 'off',
      })}
      ${
        secret_status !== 'none-by-design' &&
        field(fields, 'rejection_burst', 'Refusals in 5 minutes', {
          placeholder: 'off',
          pattern: '\\d{1,7}',
          inputmode: 'numeric',
          title: BURST_TITLE,
        })
      }
      <p>${submit(label, { id: `alarm-${key}` })}</p>`,
  )
  return disclosed('Alarms…', form, { open: sent !== undefined })
}
