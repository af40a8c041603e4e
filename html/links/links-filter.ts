import type { ListFilter } from '../../services/links/list-filter.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listFilter } from '../list-filter.ts'

/** The lists that there are. */
export type ListName = 'mine' | 'all'

const ROLES = [
  ['', 'Any'],
  ['owner', 'Owner'],
  ['co-owner', 'Co-owner'],
  ['recipient', 'Shared with me'],
] as const

const VISIBILITIES = [
  ['', 'Any'],
  ['public', 'Public'],
  ['private', 'Private'],
  ['secure', 'Secure'],
] as const

/** Path of a list. */
export function listPath(list: ListName): string {
  return list === 'mine' ? '/-/' : '/-/all'
}

/**
 * The search and filters above a list: an ordinary GET form; htmx replaces `#links-results` by the
 * fragment that the same URL answers to it, and puts that URL into the address bar.
 */
export function filterForm(list: ListName, { q, tag, visibility, role }: ListFilter): Html {
  const path = listPath(list)
  return listFilter({
    label: 'Links',
    path: path,
    results: 'links-results',
    fields: html`<label>
        Search
        <input
          type="search"
          name="q"
          value="${q}"
          maxlength="200"
          placeholder="Slug, title, address or tag"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
        />
      </label>
      <label class="half">
        Tag
        <input
          name="tag"
          value="${tag}"
          maxlength="50"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
        />
      </label>
      ${choice('visibility', 'Visibility', visibility, VISIBILITIES)}
      ${list === 'mine' && choice('role', 'I am', role, ROLES)}
      <div class="actions">
        <button type="submit" class="primary">Search</button>
        <a href="${path}">Clear</a>
      </div>`,
  })
}

function choice(
  name: string,
  label: string,
  chosen: string,
  options: readonly (readonly [value: string, text: string])[],
): Html {
  return html`<label class="half">
    ${label}
    <select name="${name}">
      ${options.map(
        ([value, text]) =>
          html`<option value="${value}" ${value === chosen && html`selected`}>${text}</option>`,
      )}
    </select>
  </label>`
}
