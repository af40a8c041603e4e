import type { EventSummary } from '../../db/hooks/log/events.ts'
import type { TrustMode } from '../../db/hooks/receive/providers.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { AlarmKind } from '../../services/hooks/receive/alarms.ts'
import type { Page } from '../../kernel/http/view.ts'
import { timeTag } from '../parts.ts'
import { placesOf, type PlaceGroup } from '../palette.ts'
import { entriesOf, errorPage, layout, type ServiceLink, type ShownFault } from '../layout.ts'

const SITE = {
  service: 'hooks',
  home: '/',
  assets: '/assets',
  tagline: 'webhooks, caught and kept',
  apiDocs: '/api/docs/',
  audit: '/audit',
  docs: '/-/docs/',
  palette: '/palette',
  navigation: entriesOf('dashboard', 'log', 'providers', 'destinations', 'settings'),
}

const ACTIONS = [
  { href: '/providers/new', label: 'Add a provider' },
  { href: '/destinations/-/new', label: 'Add a destination' },
  { href: '/log?rejected=1', label: 'See rejected deliveries' },
  { href: '/replays', label: 'See replays' },
  { href: '/searches', label: 'See saved searches' },
  { href: '/-/docs/', label: 'Read the documentation' },
]

/** The pages and actions that the palette offers. */
export function hooksPlaces(
  services: readonly ServiceLink[],
  text: string,
): readonly PlaceGroup[] {
  return placesOf({ ...SITE, services }, ACTIONS, text)
}

/** What stands around each page of the hooks service. */
export function hooksFrame(page: Page, services: readonly ServiceLink[]): Html {
  return layout({ ...SITE, services }, page)
}

/** The page of a refused or failed request. */
export function hooksErrorPage(fault: ShownFault): Page {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/log">open the log</a>.`
  return errorPage(fault, ways)
}

/** What was checked of an event, as a badge: its look, its label and its meaning. */
const BADGES = {
  verified: ['verified', 'verified', 'The signature over the body was right'],
  signed: ['unverified', 'not verified', 'The signature was not checked'],
  token: ['token', 'token ok', 'The caller knew the token; the body itself is not signed'],
  open: ['open', 'unchecked', 'Anybody may send to this provider'],
  queue: ['queue', 'via broker', 'Read from the message broker, whose connection is trusted'],
} as const

export function verifyBadge(event: Pick<EventSummary, 'trust_mode' | 'verified'>): Html {
  const [look, label, meaning] = BADGES[event.verified ? 'verified' : event.trust_mode]
  return html`<span class="badge ${look}" title="${meaning}">${label}</span>`
}

/** A provider's trust mode as a badge. */
export function trustBadge(mode: TrustMode): Html {
  return html`<span class="badge ${mode}">${mode}</span>`
}

/** The label and the meaning of each alarm. */
const ALARMS: Readonly<Record<AlarmKind, readonly [string, string]>> = {
  silent: ['silent', 'No event for longer than expected'],
  burst: ['many refused', 'Many deliveries with a wrong signature or token within five minutes'],
}

/** The alarms that fire, each as a badge. */
export function alarmBadges(firing: readonly AlarmKind[]): Printable {
  return firing.map((kind) => {
    const [label, meaning] = ALARMS[kind]
    return html`<span class="badge bad" title="${meaning}">${label}</span> `
  })
}

/** The newest answer of a receiver, or why it gave none; `whenNone` before the first attempt. */
export function lastAnswer(
  { last_at, last_status, last_detail }: LastAnswer,
  whenNone: string,
): Printable {
  if (last_at === null) return whenNone
  const detail = last_detail !== null && html`<span class="detail">${last_detail}</span>`
  return html`${last_status ?? 'no answer'}, ${timeTag(last_at)} ${detail}`
}

interface LastAnswer {
  last_at: Date | null
  last_status: number | null
  last_detail: string | null
}
