import type { LogQuery } from '../../../services/hooks/events/filter.ts'
import { html, type Html } from '../../../kernel/html.ts'
import { attributes, disclosed } from '../../parts.ts'
import {
  field,
  filterForm,
  hiddenField,
  select,
  submit,
  suggestionOptions,
  VERBATIM,
  type Form,
} from '../../form.ts'

/** The filters that are texts, with their names in the chips; an empty one is no filter. */
const FILTERS = {
  rejected: '',
  provider: 'Provider',
  event_type: 'Event type',
  since: 'Since',
  until: 'Until',
  verified: 'Signature',
  text: 'Contains',
  json: 'JSON',
  header: 'Header',
} as const
type FilterName = keyof typeof FILTERS
const NAMES = Object.keys(FILTERS) as readonly FilterName[]

/** The filters of `/log` as they stand in its URL. */
export type LogFilter = Pick<LogQuery, FilterName | 'limit'>

/** What the form shows. */
export interface FilterView {
  filter: LogFilter
  providers: readonly string[]
}

/** Whether any filter is set. */
export function isFiltered(filter: LogFilter): boolean {
  return NAMES.some((name) => filter[name] !== '')
}

const DEFAULT_LIMIT = 50

/** The address of a filtered log, without what is empty or the default. */
export function logUrl(filter: Partial<LogFilter>): string {
  return address('/log', filter)
}

function address(path: string, { limit = DEFAULT_LIMIT, ...texts }: Partial<LogFilter>): string {
  const query = new URLSearchParams()
  for (const name of NAMES) {
    if (texts[name]) query.set(name, texts[name])
  }
  if (limit !== DEFAULT_LIMIT) query.set('limit', String(limit))
  return query.size === 0 ? path : `${path}?${query}`
}

/**
 * The filters above the log. They are an ordinary GET form; htmx replaces `#log-results` by the
 * fragment that the same URL answers to it, and puts that URL into the address bar.
 */
export function logFilter({ filter, providers }: FilterView): Html {
  const { provider, rejected } = filter
  // A removed provider still has events, so the provider of the URL is always offered.
  const gone = providers.includes(provider) ? [] : [provider]
  const names = [...new Set(['', ...gone, ...providers])]
  const options = names.map((name) => [name, name || 'All'] as const)
  const isRejected = rejected === '1'
  const form = { id: 'filter', typed: { ...filter, limit: String(filter.limit) } }
  return filterForm(
    'Filter',
    { path: '/log', results: 'log-results' },
    html`${isRejected && hiddenField('rejected', '1')}
      ${select(form, 'provider', 'Provider', options, 'half')}
      ${isRejected ? rowsField(form) : eventFields(form)}
      <div class="actions">
        ${submit('Filter')}
        <a href="${logUrl({ rejected })}">Clear</a>
      </div>
      ${!isRejected && moreFields(form, filter)}`,
  )
}

/** What people filter by most. */
function eventFields(form: Form): Html {
  return html`${field(form, 'event_type', 'Event type', {
    ...VERBATIM,
    width: 'half',
    list: TYPES,
    placeholder: 'invoice.*',
    title: 'A type, or with * for any characters, in any case',
  })}
  ${field(form, 'text', 'Payload contains', {
    ...VERBATIM,
    title: 'Text in the first MiB of the payload; upper and lower case differ',
  })}
  ${field(form, 'since', 'Since', {
    ...VERBATIM,
    placeholder: '24h, 2026-05-04 or id',
    title: BOUND_TITLE,
  })}`
}

const TYPES = 'log-types'
const BOUND_TITLE =
  'A date and time with time zone, today (UTC), a duration before now (15m, 24h, 7d), or an event id'

const PRESETS = { 'Last hour': '1h', 'Last 24 hours': '24h', 'Today (UTC)': 'today' } as const

/**
 * Common times as links: they keep the other filters, and so they stand in the part that follows
 * them.
 */
function presets(filter: LogFilter): Html {
  const links = Object.entries(PRESETS).map(([label, since]) => {
    const isChosen = filter.since === since && filter.until === ''
    const own = {
      href: logUrl({ ...filter, since, until: '' }),
      'aria-current': isChosen && 'true',
    }
    return html`<a${attributes(own)}>${label}</a> `
  })
  return html`<p class="actions presets">${links}</p>`
}

const VERIFIED = { '': 'Any', true: 'Verified', false: 'Not verified' } as const

/** What fewer people need; open when one of them is set. */
function moreFields(form: Form, { until, verified, json, header, limit }: LogFilter): Html {
  const open = [until, verified, json, header].some(Boolean) || limit !== DEFAULT_LIMIT
  return disclosed(
    'More filters',
    html`<div class="filter">
      ${field(form, 'until', 'Until', {
        ...VERBATIM,
        placeholder: '2026-05-04T09:00Z or id',
        title: `${BOUND_TITLE}; events before that time, or up to that id`,
      })}
      ${select(form, 'verified', 'Signature', Object.entries(VERIFIED), 'half')}
      ${field(form, 'header', 'Header', {
        ...VERBATIM,
        placeholder: 'x-github-event=push',
        title: 'The name of a header, or name=value',
      })}
      ${field(form, 'json', 'JSON members, a line each', {
        ...VERBATIM,
        rows: 2,
        placeholder: 'data.object.id=evt_1',
        title: 'Paths into the JSON payload (1 MiB at most) and the values they must have',
      })}
      ${rowsField(form)}
    </div>`,
    { class: 'more-filters', open },
  )
}

function rowsField(form: Form): Html {
  return field(form, 'limit', 'Rows', {
    type: 'number',
    min: 1,
    max: 200,
    'data-default': DEFAULT_LIMIT,
    width: 'narrow',
  })
}

/**
 * What stands above the events and follows the filters: common times, each filter that is set with a
 * way to remove it, what may be done with what they choose, and the types that the form offers.
 */
export function filterLine(filter: LogFilter, types: readonly string[]): Html {
  const { limit: _limit, rejected: _rejected, ...chosen } = filter
  const chips = NAMES.flatMap((name) => chipsOf(filter, name))
  return html`<div class="title-line filter-line">
    ${presets(filter)}
    ${
      chips.length > 0 &&
      html`<ul class="badges chips" aria-label="Active filters">
        ${chips}
      </ul>`
    }
    <p class="actions">
      <a href="${address('/replays/new', chosen)}">Replay…</a>
      <a href="${address('/log/export', chosen)}" download>Download as NDJSON</a>
    </p>
    <datalist id="${TYPES}">${suggestionOptions(types)}</datalist>
  </div>`
}

/** The filters that are set: the label of each, and its text. */
export function chosenFilters(
  filter: Partial<LogFilter>,
): readonly (readonly [label: string, value: string])[] {
  return NAMES.flatMap((name) => {
    const value = (filter[name] ?? '').trim()
    return value === '' || FILTERS[name] === '' ? [] : [[FILTERS[name], value] as const]
  })
}

function chipsOf(filter: LogFilter, name: FilterName): readonly Html[] {
  const label = FILTERS[name]
  const value = filter[name].trim()
  if (value === '' || label === '') return []
  if (name !== 'json') {
    const shown = name === 'verified' ? VERIFIED[filter.verified] : value
    return [chip(label, shown, logUrl({ ...filter, [name]: '' }))]
  }
  const members = value.split(/\r?\n/).filter((line) => line.trim() !== '')
  return members.map((member, at) => {
    const json = members.toSpliced(at, 1).join('\n')
    return chip(label, member, logUrl({ ...filter, json }))
  })
}

function chip(label: string, value: string, without: string): Html {
  return html`<li>
    <a href="${without}" title="Remove this filter"
      ><span class="hidden">Remove the filter</span> ${label}: ${value}
      <span aria-hidden="true">×</span></a
    >
  </li>`
}
