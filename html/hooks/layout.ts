import type { EventSummary } from '../../db/hooks/events.ts'
import type { TrustMode } from '../../db/hooks/providers.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { AlarmKind } from '../../services/hooks/alarms.ts'
import { entriesOf, errorPage, layout, type Page, type ShownFault } from '../layout.ts'

const SITE = {
  home: '/',
  assets: '/assets',
  tagline: 'webhooks, caught and kept',
  navigation: entriesOf('dashboard', 'log', 'providers', 'settings'),
}

/** A page of the hooks service. */
export function hooksPage(page: Page): Html {
  return layout(SITE, page)
}

/** The page of a refused or failed request. */
export function hooksErrorPage(fault: ShownFault): Html {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/log">open the log</a>.`
  return hooksPage(errorPage(fault, ways))
}

/** What was checked of an event: the states of its badge. */
export type Verification = 'verified' | TrustMode

const BADGES: Readonly<
  Record<Verification, readonly [look: string, label: string, meaning: string]>
> = {
  verified: ['verified', 'verified', 'The signature over the body was right'],
  signed: ['unverified', 'not verified', 'The signature was not checked'],
  token: ['token', 'token ok', 'The caller knew the token; the body itself is not signed'],
  open: ['open', 'unchecked', 'Anybody may send to this provider'],
  queue: ['queue', 'via broker', 'Read from the message broker, whose connection is trusted'],
}

/** The states in the order in which a row's template lists them. */
export const VERIFICATIONS = Object.keys(BADGES) as readonly Verification[]

/** What was checked of an event; app.js says it of the rows that it adds. */
export function verification(event: Pick<EventSummary, 'trust_mode' | 'verified'>): Verification {
  return event.verified ? 'verified' : event.trust_mode
}

/** The verify status as text on a coloured ground. */
export function verifyBadge(state: Verification): Html {
  const [look, label, meaning] = BADGES[state]
  return html`<span class="badge ${look}" data-verify="${state}" title="${meaning}">${label}</span>`
}

/** A provider's trust mode as a badge. */
export function trustBadge(mode: TrustMode): Html {
  return html`<span class="badge ${mode}">${mode}</span>`
}

const ALARMS: Readonly<Record<AlarmKind, readonly [label: string, meaning: string]>> = {
  silent: ['silent', 'No event for longer than expected'],
  burst: ['many refused', 'Many deliveries with a wrong signature or token within five minutes'],
}

/** Every alarm as a badge, hidden unless it fires: the browser's script shows and hides them. */
export function alarmBadges(firing: readonly AlarmKind[]): Printable {
  return Object.entries(ALARMS).map(
    ([kind, [label, meaning]]) =>
      html`<span
        class="badge bad"
        data-alarm="${kind}"
        title="${meaning}"
        ${!firing.some((one) => one === kind) && html`hidden`}
        >${label}</span
      >`,
  )
}
