import type { LogQuery } from '../../services/hooks/event-filter.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Attributes } from '../parts.ts'
import { filterForm, hiddenField, plainChoice, plainField, submit } from '../form.ts'

/** The filters that are texts; an empty one is no filter. */
const FILTERS = ['rejected', 'provider', 'event_type', 'since', 'text', 'json'] as const
type FilterName = (typeof FILTERS)[number]

/** The filters of `/log` as they stand in its URL. */
export type LogFilter = Pick<LogQuery, FilterName | 'limit'>

/** What the form shows. */
interface FilterView {
  filter: LogFilter
  providers: readonly string[]
}

/** Whether any filter is set. */
export function isFiltered(filter: LogFilter): boolean {
  return FILTERS.some((name) => filter[name] !== '')
}

const DEFAULT_LIMIT = 50

/** The address of a filtered log, without what is empty or the default. */
export function logUrl({ limit = DEFAULT_LIMIT, ...texts }: Partial<LogFilter>): string {
  const query = new URLSearchParams()
  for (const name of FILTERS) {
    if (texts[name]) query.set(name, texts[name])
  }
  if (limit !== DEFAULT_LIMIT) query.set('limit', String(limit))
  return query.size === 0 ? '/log' : `/log?${query}`
}

/**
 * The filters above the log. They are an ordinary GET form; htmx replaces `#log-results` by the
 * fragment that the same URL answers to it, and puts that URL into the address bar.
 */
export function logFilter({ filter, providers }: FilterView): Html {
  const { provider, rejected, limit } = filter
  // A removed provider still has events, so the provider of the URL is always offered.
  const gone = providers.includes(provider) ? [] : [provider]
  const names = [...new Set(['', ...gone, ...providers])]
  const options = names.map((name) => [name, name || 'All'] as const)
  return filterForm(
    'Filter',
    { path: '/log', results: 'log-results' },
    html`${rejected === '1' && hiddenField('rejected', '1')}
      ${plainChoice('Provider', provider, options, { name: 'provider' })}
      ${rejected !== '1' && eventFields(filter)}
      ${plainField('Rows', {
        labelClass: 'narrow',
        type: 'number',
        name: 'limit',
        min: 1,
        max: 200,
        value: limit,
        'data-default': DEFAULT_LIMIT,
      })}
      <div class="actions">
        ${submit('Filter')}
        <a href="${logUrl({ rejected })}">Clear</a>
      </div>`,
  )
}

function eventFields(filter: LogFilter): Html {
  const text = (label: string, name: FilterName, own: Attributes): Html =>
    plainField(label, { name, value: filter[name], spellcheck: 'false', ...own })
  return html`${text('Event type', 'event_type', { labelClass: 'half' })}
  ${text('Since', 'since', {
    placeholder: '2026-05-04T08:30Z or id',
    title: 'A date and time with time zone, or an event id',
  })}
  ${text('Payload contains', 'text', {
    title: 'Text in the first MiB of the payload; upper and lower case differ',
  })}
  ${text('JSON member', 'json', {
    placeholder: 'data.object.id=evt_1',
    title: 'A path into the JSON payload (1 MiB at most) and the value it must have',
  })}`
}
