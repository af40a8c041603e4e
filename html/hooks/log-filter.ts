import type { LogQuery } from '../../services/hooks/event-filter.ts'
import { html, type Html } from '../../kernel/html.ts'
import { attributes, disclosed, type Attributes } from '../parts.ts'
import {
  filterForm,
  hiddenField,
  plainChoice,
  plainField,
  submit,
  suggestionOptions,
} from '../form.ts'

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
  /** Known event types of the chosen provider, or of all. */
  types: readonly string[]
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
export function logFilter({ filter, providers }: Pick<FilterView, 'filter' | 'providers'>): Html {
  const { provider, rejected } = filter
  // A removed provider still has events, so the provider of the URL is always offered.
  const gone = providers.includes(provider) ? [] : [provider]
  const names = [...new Set(['', ...gone, ...providers])]
  const options = names.map((name) => [name, name || 'All'] as const)
  const isRejected = rejected === '1'
  return filterForm(
    'Filter',
    { path: '/log', results: 'log-results' },
    html`${isRejected && hiddenField('rejected', '1')}
      ${plainChoice('Provider', provider, options, { name: 'provider' })}
      ${isRejected ? rowsField(filter) : eventFields(filter)}
      <div class="actions">
        ${submit('Filter')}
        <a href="${logUrl({ rejected })}">Clear</a>
      </div>
      ${!isRejected && presets(filter)} ${!isRejected && moreFields(filter)}`,
  )
}

/** What people filter by most. */
function eventFields(filter: LogFilter): Html {
  return html`${textField(filter, 'Event type', 'event_type', {
    labelClass: 'half',
    list: TYPES,
    placeholder: 'invoice.*',
    title: 'A type, or with * for any characters, in any case',
  })}
  ${textField(filter, 'Payload contains', 'text', {
    title: 'Text in the first MiB of the payload; upper and lower case differ',
  })}
  ${textField(filter, 'Since', 'since', {
    placeholder: '24h, 2026-05-04 or id',
    title: BOUND_TITLE,
  })}`
}

const TYPES = 'log-types'
const BOUND_TITLE =
  'A date and time with time zone, today (UTC), 15m, 24h or 7d for so long ago, or an event id'

const PRESETS = { 'Last hour': '1h', 'Last 24 hours': '24h', 'Today (UTC)': 'today' } as const

/** Common times as links: they keep the other filters. */
function presets(filter: LogFilter): Html {
  const links = Object.entries(PRESETS).map(([label, since]) => {
    const isChosen = filter.since === since && filter.until === ''
    const own = {
      href: logUrl({ ...filter, since, until: '' }),
      'aria-current': isChosen && 'true',
    }
    return html`<a${attributes(own)}>${label}</a> `
  })
  return html`<p class="presets">${links}</p>`
}

const VERIFIED = { '': 'Any', true: 'Verified', false: 'Not verified' } as const

/** What fewer people need; open when one of them is set. */
function moreFields(filter: LogFilter): Html {
  const { until, verified, json, header, limit } = filter
  const open = [until, verified, json, header].some(Boolean) || limit !== DEFAULT_LIMIT
  return disclosed(
    'More filters',
    html`<div class="more-fields">
      ${textField(filter, 'Until', 'until', {
        placeholder: '2026-05-04T09:00Z or id',
        title: `${BOUND_TITLE}; events before that time, or up to that id`,
      })}
      ${plainChoice('Signature', verified, Object.entries(VERIFIED), { name: 'verified' })}
      ${textField(filter, 'Header', 'header', {
        placeholder: 'x-github-event=push',
        title: 'The name of a header, or name=value',
      })}
      <label class="members"
        >JSON members, a line each
        <textarea
          name="json"
          rows="2"
          spellcheck="false"
          placeholder="data.object.id=evt_1"
          title="Paths into the JSON payload (1 MiB at most) and the values they must have"
        >
${json}</textarea>
      </label>
      ${rowsField(filter)}
    </div>`,
    { class: 'more-filters', open },
  )
}

function textField(
  filter: LogFilter,
  label: string,
  name: FilterName,
  own: Attributes & { labelClass?: string },
): Html {
  return plainField(label, { name, value: filter[name], spellcheck: 'false', ...own })
}

function rowsField({ limit }: LogFilter): Html {
  return plainField('Rows', {
    labelClass: 'narrow',
    type: 'number',
    name: 'limit',
    min: 1,
    max: 200,
    value: limit,
    'data-default': DEFAULT_LIMIT,
  })
}

/**
 * What stands above the events and follows the filters: each that is set with a way to remove it,
 * a download of what they choose, and the types that the form offers.
 */
export function filterLine({ filter, types }: FilterView): Html {
  const { limit: _limit, rejected: _rejected, ...chosen } = filter
  const chips = NAMES.flatMap((name) => chipsOf(filter, name))
  return html`<div class="filter-line">
    ${
      chips.length > 0 &&
      html`<ul class="chips" aria-label="Active filters">
        ${chips}
      </ul>`
    }
    <a href="${address('/log/export', chosen)}" download>Download as NDJSON</a>
    <datalist id="${TYPES}">${suggestionOptions(types)}</datalist>
  </div>`
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
