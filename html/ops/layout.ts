import type { Level } from '../../db/notices.ts'
import type { Status } from '../../db/ops/agent/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page, View } from '../../kernel/http/view.ts'
import { field, postForm, submit, type Form } from '../form.ts'
import {
  contentView,
  entriesOf,
  errorPage,
  layout,
  type ServiceLink,
  type ShownFault,
} from '../layout.ts'
import { placesOf, type PlaceGroup } from '../palette.ts'
import { timeTag } from '../parts.ts'

const SITE = {
  service: 'ops',
  home: '/',
  assets: '/assets',
  tagline: 'an agent that looks after services',
  apiDocs: '/api/docs/',
  audit: '/audit',
  docs: '/-/docs/',
  palette: '/palette',
  navigation: entriesOf(
    'dashboard',
    'checks',
    'sessions',
    'events',
    'notices',
    'alerts',
    'memories',
    'cooldowns',
    'config',
  ),
}

const ACTIONS = [
  { href: '/#trigger', label: 'Start a session' },
  { href: '/checks/new', label: 'Add a check' },
  { href: '/checks/new?type=heartbeat', label: 'Add a heartbeat of a job' },
  { href: '/mutes', label: 'Mute checks' },
  { href: '/silences', label: 'Silence alerts' },
  { href: '/memories#new-memory', label: 'Add a memory' },
  { href: '/approvals', label: 'Decide what waits for approval' },
  { href: '/waiting', label: 'See what waits for you' },
  { href: '/config#status-page', label: 'Choose what the status page shows' },
  { href: '/-/docs/', label: 'Read the documentation' },
]

/** The pages and actions that the palette offers. */
export function opsPlaces(services: readonly ServiceLink[], text: string): readonly PlaceGroup[] {
  return placesOf({ ...SITE, services }, ACTIONS, text)
}

/** The rows of a page of a list, and the address of the next page, if there is one. */
export interface Listed<Row> {
  rows: readonly Row[]
  older: string | undefined
}

/** What stands around each page of the ops service; `banner` stands above it. */
export function opsFrame(
  page: Page,
  services: readonly ServiceLink[],
  banner: Html | false = false,
): Html {
  return layout({ ...SITE, services }, { ...page, body: html`${banner} ${page.body}` })
}

/** A page of the navigation, of which htmx replaces the content. */
export function opsView(
  title: string,
  content: Html,
  { above, below }: { above?: Html; below?: Html } = {},
): View {
  const heading = html`<h1>${title}</h1>
    ${above}`
  return contentView({ title, section: title.toLowerCase(), above: heading, below }, content)
}

/** The page of a refused or failed request. */
export function opsErrorPage(fault: ShownFault): Page {
  const dashboard = html`<a href="/">Go to the dashboard</a>`
  const sessions = html`<a href="/sessions">to the sessions</a>`
  return errorPage(fault, html`${dashboard} or ${sessions}.`)
}

const STATUS_LOOK: Readonly<Record<Status, string>> = {
  running: 'token',
  completed: 'verified',
  failed: 'bad',
  timed_out: 'bad',
  escalated: 'open',
  stopped: 'open',
}
const LEVEL_LOOK: Readonly<Record<Level, string>> = {
  info: 'token',
  warning: 'open',
  critical: 'bad',
}

export function statusBadge(status: Status): Html {
  return html`<span class="badge ${STATUS_LOOK[status]}">${status.replace('_', ' ')}</span>`
}

export function levelBadge(level: Level): Html {
  return html`<span class="badge ${LEVEL_LOOK[level]}">${level}</span>`
}

export function sessionLink(id: number): Html {
  return html`<a href="/sessions/${id}">session ${id}</a>`
}

/** The model of a session; the probe works without a model. */
export function modelText(model: string): string {
  return model === 'none' ? 'no model' : model
}

/** US dollars; small amounts with two significant digits. */
export function costText(dollars: number | null): string {
  if (dollars === null) return 'not known'
  if (dollars === 0) return '$0'
  return dollars < 0.1 ? `$${Number(dollars.toPrecision(2))}` : `$${dollars.toFixed(2)}`
}

/** A duration, such as `4.2 s`, `12 min 5 s`, `3 h 20 min` or `2 d 4 h`. */
export function durationText(milliseconds: number): string {
  const seconds = milliseconds / 1_000
  const whole = Math.round(seconds)
  if (whole < 60) return `${seconds < 9.95 ? seconds.toFixed(1) : whole} s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 60) return `${minutes} min ${whole % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24
    ? `${hours} h ${minutes % 60} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** What a model reads beside a text, and the marks of Markdown. */
const FRAMES = /Between the two lines [A-Z]+-[0-9a-f]{32} stands [^\n]*|^[A-Z]+-[0-9a-f]{32}$/gm
const LINE_MARKS = /^ {0,3}(?:#{1,6} +|> ?|(?:```|~~~).*$)/gm
const BOLD = /\*\*([^*\n]+)\*\*|`([^`\n]+)`/g
const LINK = /!?\[([^[\]\n]*)\]\([^()\n]*\)/g

/** The beginning of a text of an agent, plain and on one line. */
export function shortText(text: string, maxLength: number): string {
  // Cut first: it may be very long. Frames and marks take room that does not count.
  const start = text.slice(0, 2 * maxLength + 1_000)
  const plain = start
    .replaceAll(FRAMES, '')
    .replaceAll(LINE_MARKS, '')
    .replaceAll(BOLD, '$1$2')
    .replaceAll(LINK, '$1')
  const line = plain.replaceAll(/\s+/g, ' ').trim()
  if (line.length <= maxLength && start === text) return line
  return `${line.slice(0, maxLength - 1).trimEnd()}…`.toWellFormed()
}

/** A time in which something is held back, such as a mute. `scope` says what, in words. */
interface HeldBack {
  id: number
  starts_at: Date
  ends_at: Date
  reason: string
  author: string
  scope: string
  /** Days and hours of one that comes back, and their zone. */
  every?: string | null
  tz?: string | null
}

/** A mute or a silence, with the button that ends or cancels it. */
export function heldBackCard(kind: 'mute' | 'silence', held: HeldBack, now: Date): Html {
  const { id, starts_at, ends_at, reason, author, scope, every = null, tz = null } = held
  const isOn = starts_at <= now
  const once = isOn ? 'End now' : 'Cancel'
  const label = html`${every === null ? once : 'Remove'} <span class="hidden">${scope}</span>`
  return html`<article class="panel card" aria-labelledby="${kind}-${id}">
    <div class="title-line">
      <h2 id="${kind}-${id}"><bdi>${scope}</bdi></h2>
      <span class="badge">${isOn ? `${kind}d now` : 'to come'}</span>
    </div>
    <p><bdi>${reason}</bdi></p>
    ${every !== null && html`<p>Every <bdi>${every}</bdi> (<bdi>${tz}</bdi>)</p>`}
    <p class="muted">
      ${timeTag(starts_at, 'exact')} to ${timeTag(ends_at, 'exact')} · by <bdi>${author}</bdi>
    </p>
    ${postForm(
      { action: `/${kind}s/${id}/delete`, target: `#${kind}s` },
      submit(label, { id: `end-${id}` }),
    )}
  </article>`
}

const UTC = 'A time with its zone, such as 2027-01-31T12:00:00Z.'

/** The fields that say when it begins and ends, and why; `more` are of its own kind. */
export function heldBackFields(form: Form, more?: Html): Html {
  return html`${field(form, 'for', 'For', {
    hint: 'Such as 90s, 15m, 24h or 7d; or say until when.',
  })}
  ${field(form, 'starts_at', 'From', { hint: `${UTC} Now without it.` })}
  ${field(form, 'ends_at', 'Until', { hint: UTC })} ${more}
  ${field(form, 'reason', 'Reason', { required: true })}`
}
