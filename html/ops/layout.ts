import { html, type Html } from '../../kernel/html.ts'
import { entriesOf, errorPage, layout, type Page, type ShownFault } from '../layout.ts'
import type { Level } from '../../db/ops/events.ts'
import type { Status } from '../../db/ops/sessions.ts'

const SITE = {
  home: '/',
  assets: '/assets',
  tagline: 'an agent that looks after services',
  apiDocs: '/api/docs/',
  navigation: entriesOf(
    'dashboard',
    'sessions',
    'events',
    'alerts',
    'memories',
    'cooldowns',
    'config',
  ),
  head: html`<link rel="stylesheet" href="/assets/ops.css" />
    <script src="/assets/ops.js" type="module"></script>`,
}

/** A page of the ops service. */
export function opsPage(page: Page): Html {
  return layout(SITE, page)
}

/** The page of a refused or failed request. */
export function opsErrorPage(fault: ShownFault): Html {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/sessions">to the sessions</a>.`
  return opsPage(errorPage(fault, ways))
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

/** The model of a session; the probe has none. */
export function modelText(model: string): string {
  return model === 'none' ? 'no model' : model
}

/** US dollars; small amounts with two significant digits. */
export function costText(dollars: number | null): string {
  if (dollars === null) return 'not known'
  if (dollars === 0) return '$0'
  return dollars < 0.1 ? `$${Number(dollars.toPrecision(2))}` : `$${dollars.toFixed(2)}`
}

/** A duration, such as `4.2 s` or `12 min 5 s`. */
export function durationText(milliseconds: number): string {
  const seconds = milliseconds / 1_000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)} min ${whole % 60} s`
}

/** The beginning of a text, on one line. */
export function shortText(text: string, maxLength: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= maxLength
    ? line
    : `${line.slice(0, maxLength - 1).trimEnd()}…`.toWellFormed()
}
