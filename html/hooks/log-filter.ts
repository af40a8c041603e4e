import { html, type Html } from '../../kernel/html.ts'
import { listFilter } from '../list-filter.ts'
import type { LogFilter } from './views.ts'

const DEFAULT_LIMIT = 50

/** The address of a filtered log, without what is empty or the default. */
export function logUrl(filter: Partial<LogFilter> & { readonly rejected?: boolean }): string {
  const query = new URLSearchParams()
  if (filter.rejected === true) query.set('rejected', '1')
  for (const name of ['provider', 'event_type', 'since', 'text', 'json'] as const) {
    const value = filter[name]
    if (value !== undefined && value !== '') query.set(name, value)
  }
  if (filter.limit !== undefined && filter.limit !== DEFAULT_LIMIT) {
    query.set('limit', String(filter.limit))
  }
  return query.size === 0 ? '/log' : `/log?${query}`
}

/**
 * The filters above the log. They are an ordinary GET form; htmx replaces `#log-results` by the
 * fragment that the same URL answers to it, and puts that URL into the address bar.
 */
export function filterForm(
  filter: LogFilter,
  providers: readonly string[],
  rejected: boolean,
): Html {
  return listFilter({
    label: 'Filter',
    path: '/log',
    results: 'log-results',
    fields: html`${rejected && html`<input type="hidden" name="rejected" value="1" />`}
      <label class="half">
        Provider
        <select name="provider">
          <option value="">All</option>
          ${choices(filter.provider, providers).map(
            (name) => html`<option ${name === filter.provider && html`selected`}>${name}</option>`,
          )}
        </select>
      </label>
      ${!rejected && eventFields(filter)}
      <label class="narrow">
        Rows
        <input
          type="number"
          name="limit"
          min="1"
          max="200"
          value="${filter.limit}"
          data-default="${DEFAULT_LIMIT}"
        />
      </label>
      <div class="actions">
        <button type="submit" class="primary">Filter</button>
        <a href="${logUrl({ rejected })}">Clear</a>
      </div>`,
  })
}

function eventFields(filter: LogFilter): Html {
  return html`<label class="half">
      Event type
      <input name="event_type" value="${filter.event_type}" autocomplete="off" spellcheck="false" />
    </label>
    <label>
      Since
      <input
        name="since"
        value="${filter.since}"
        placeholder="2026-05-04T08:30Z or id"
        title="A date and time with time zone, or an event id"
        autocomplete="off"
        spellcheck="false"
      />
    </label>
    <label>
      Payload contains
      <input
        name="text"
        value="${filter.text}"
        title="Text in the first MiB of the payload; upper and lower case differ"
        autocomplete="off"
        spellcheck="false"
      />
    </label>
    <label>
      JSON member
      <input
        name="json"
        value="${filter.json}"
        placeholder="data.object.id=evt_1"
        title="A path into the JSON payload (1 MiB at most) and the value it must have"
        autocomplete="off"
        spellcheck="false"
      />
    </label>`
}

/** A provider that was removed has events all the same, so the one in the URL is always offered. */
function choices(chosen: string, providers: readonly string[]): readonly string[] {
  return chosen === '' || providers.includes(chosen) ? providers : [chosen, ...providers]
}
