import { html, type Html } from '../../../../kernel/html.ts'
import type { EventCount } from '../../../../services/hooks/log/events/counts.ts'
import type { LogTime } from '../../../../services/hooks/log/events/days.ts'
import type { LogTyped } from '../../../../services/hooks/log/events/log-address.ts'
import { barChart } from '../../../chart.ts'
import { countText } from '../../../parts.ts'
import { instantText, zoneField } from '../../../times.ts'
import { menu } from '../../../ways.ts'
import {
  DEFAULT_LIMIT,
  FILTER_NAMES,
  FILTERS,
  filteredUrl,
  logUrl,
  type LogFilter,
} from '../../log-url.ts'
import {
  field,
  filterForm,
  hiddenField,
  select,
  submit,
  suggestionOptions,
  VERBATIM,
  type Form,
} from '../../../form.ts'

/** What the form shows. */
export interface FilterView {
  filter: LogFilter
  providers: readonly string[]
  typed: LogTyped
}

/** Whether any filter is set. */
export function isFiltered(filter: LogFilter): boolean {
  return FILTER_NAMES.some((name) => filter[name] !== '')
}

/**
 * The filters above the log, in one line. They are an ordinary GET form; htmx replaces
 * `#log-results` by the fragment that the same URL answers to it, and puts that URL into the
 * address bar.
 */
export function logFilter({ filter, providers, typed }: FilterView): Html {
  const { provider, rejected, limit } = filter
  // A removed provider still has events, so the provider of the URL is always offered.
  const gone = providers.includes(provider) ? [] : [provider]
  const names = [...new Set(['', ...gone, ...providers])]
  const options = names.map((name) => [name, name || 'All providers'] as const)
  const isRejected = rejected === '1'
  const form = { id: 'filter', typed: { ...typed, provider } }
  return filterForm(
    'Filter',
    {
      path: '/log',
      results: 'log-results',
      trigger: TRIGGER,
    },
    html`${isRejected && hiddenField('rejected', '1')}
      ${limit !== DEFAULT_LIMIT && hiddenField('limit', String(limit))}
      ${!isRejected && textField(form)} ${select(form, 'provider', 'Provider', options, 'half')}
      ${!isRejected && timeFields(form)}
      <div class="actions">
        ${submit('Filter')} ${!isRejected && menu('Words', [WORDS])}
        <a href="${logUrl({ rejected })}">Clear</a>
      </div>`,
  )
}

/** The times of the menu. */
const TIMES: Readonly<Record<LogTime, string>> = {
  '': 'Any time',
  '1h': 'Last hour',
  '24h': 'Last 24 hours',
  today: 'Today',
  yesterday: 'Yesterday',
  '7d': 'Last 7 days',
  days: 'Own days…',
}

function textField(form: Form): Html {
  return field(form, 'q', 'Filters', {
    ...VERBATIM,
    type: 'search',
    list: TYPES,
    placeholder: 'type:invoice.* customer:Globex, or any text',
  })
}

/** Which words the field knows. */
const WORDS = html`<dl class="words">
  ${[
    ['type:invoice.*', 'the event type; * for any characters'],
    ['customer:Globex', 'a member of the payload of this name, anywhere'],
    ['data.object.id:evt_1', 'the member at a path'],
    ['since:24h until:2026-05-04', 'a duration before now, a time, or an event id'],
    ['verified:true', 'the signature; or verified:false'],
    ['header:x-github-event=push', 'a header, with or without its value'],
    ['"two words"', 'text in the first MiB of the payload'],
  ].map(
    ([word, meaning]) =>
      html`<dt><code>${word}</code></dt>
        <dd>${meaning}</dd>`,
  )}
</dl>`

/** When: a choice, and the days that the last one asks for. Without script they are of UTC. */
function timeFields(form: Form & { typed: LogTyped }): Html {
  return html`${select(form, 'when', 'Time', Object.entries(TIMES), 'half')}
    <fieldset class="days">
      ${field(form, 'from', 'First day', { type: 'date' })}
      ${field(form, 'to', 'Last day', { type: 'date' })}
    </fieldset>
    ${zoneField(form.typed.zone)}`
}

const TYPES = 'log-types'
/** It asks when a menu or a day has changed, and while one types. */
const TRIGGER =
  'change target:select, change target:[type=date], input delay:300ms target:[type=search]'

/** What follows the filters. */
export interface FilterLine {
  filter: LogFilter
  /** Known event types of the chosen provider, or of all. */
  types: readonly string[]
  /** Of a first page. */
  counted: EventCount | undefined
}

/**
 * What stands above the events and follows the filters: how many there are and when they came, what
 * may be done with them, the saved searches, and the types that the form offers.
 */
export function filterLine({ filter, types, counted }: FilterLine, searches: Html): Html {
  const { limit: _limit, rejected: _rejected, ...chosen } = filter
  return html`<div class="filter-line">
    ${counted !== undefined && html`${countTag(counted)} ${timesChart(counted)}`}
    <div class="actions">
      ${searches}
      <a href="${filteredUrl('/replays/new', chosen)}">Replay…</a>
      <a href="${filteredUrl('/log/export', chosen)}" download>Download as NDJSON</a>
    </div>
    <datalist id="${TYPES}">${suggestionOptions(types.map((type) => `type:${type}`))}</datalist>
  </div>`
}

function countTag({ count, isMore }: EventCount): Html {
  const text = isMore ? `More than ${countText(count, 'event')}` : countText(count, 'event')
  return html`<span class="muted" role="status">${text}</span>`
}

const BARS = 60

/** When the counted events came. With the mouse a range is drawn, which becomes a filter. */
function timesChart({ times }: EventCount): Html | false {
  const [last, first] = [times[0]?.getTime(), times.at(-1)?.getTime()]
  if (last === undefined || first === undefined || last - first < BARS * 1000) return false
  const width = (last - first) / BARS
  const counts = Array.from({ length: BARS }, () => 0)
  for (const time of times) {
    const at = Math.min(BARS - 1, Math.floor((time.getTime() - first) / width))
    counts[at] = (counts[at] ?? 0) + 1
  }
  const bars = counts.map((value, at) => {
    const label = instantText(new Date(first + at * width))
    return { label, parts: [{ kind: 'some', value }] }
  })
  const label = `Events over time, from ${bars[0]?.label} to ${bars.at(-1)?.label}`
  return html`<div id="log-times" data-first="${first}" data-last="${last}">
    ${barChart(label, bars, { kind: 'times', height: 28 })}
  </div>`
}

/** The filters that are set: the label of each, and its text. */
export function chosenFilters(
  filter: Partial<LogFilter>,
): readonly (readonly [label: string, value: string])[] {
  return FILTER_NAMES.flatMap((name) => {
    const value = (filter[name] ?? '').trim()
    return value === '' || FILTERS[name] === '' ? [] : [[FILTERS[name], value] as const]
  })
}

/** The filters of an address of the log in a line, as its form shows them. */
export function filtersText(query: string): string {
  const texts = new URLSearchParams(query)
  const { q = '', provider = '', when = '', from = '', to = '' } = Object.fromEntries(texts)
  const zone = texts.get('zone')
  const time = when === 'days' ? `${from || '…'} to ${to || '…'}` : when && TIMES[when as LogTime]
  return [q, provider, zone === null ? time : `${time} (${zone})`].filter(Boolean).join(' · ')
}
