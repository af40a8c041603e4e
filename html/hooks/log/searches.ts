import type { Search } from '../../../db/hooks/log/searches.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, Page } from '../../../kernel/http/view.ts'
import { field, hiddenField, postForm, refusal, removalForm, submit } from '../../form.ts'
import { cards, disclosed, facts } from '../../parts.ts'
import { menu } from '../../ways.ts'
import { filtersText } from './events/filter.ts'

/** The saved searches in the line of filters. */
export interface SearchMenu {
  searches: readonly Search[]
  /** The filters that are set, as the address has them; empty for none. */
  query: string
}

/** What is shown of the menu after its form was sent. */
interface Sent {
  /** The search that was just saved. */
  saved?: number
  /** The form that was just refused. */
  form?: FormState
}

/** What `/searches` shows. */
export interface SearchesView {
  searches: readonly Search[]
  /** The form that saves a search, where it was refused to a browser without script. */
  refused?: FormState
  /** The form that renames a search, where it was refused. */
  renamed?: { id: number; form: FormState }
}

/** The menu that the form has, and the place that it has on the page without script. */
const SAVING = 'saved-searches'

/** One click leads to a saved search; the filters that are set can be saved as another one. */
export function searchMenu({ searches, query }: SearchMenu, { saved, form }: Sent = {}): Html {
  const links = searches.map(({ id, name, query: filters }) => {
    return { href: `/log?${filters}`, label: name, autofocus: id === saved }
  })
  const items = [
    ...links,
    query === ''
      ? html`<p class="hint">Set filters, then save them here under a name.</p>`
      : saveForm(query, form),
    searches.length > 0 && { href: '/searches', label: 'Rename or remove…' },
  ]
  const isOpen = saved !== undefined || form !== undefined
  return menu(
    'Saved searches',
    items.filter((item) => item !== false),
    { id: SAVING, open: isOpen },
  )
}

function saveForm(query: string, sent: FormState | undefined): Html {
  const form = { id: 'search', ...sent }
  return postForm(
    { class: 'stack', action: '/searches', target: `#${SAVING}` },
    html`${refusal(form)} ${hiddenField('query', query)}
      ${field(form, 'name', 'Save these filters as', { required: true, placeholder: 'a name' })}
      <p class="actions">${submit('Save', { id: 'save-search' })}</p>`,
  )
}

/** `/searches`: what is saved, to be renamed and removed. */
export function searchesPage(view: SearchesView): Page {
  const { refused } = view
  const saving =
    refused !== undefined &&
    html`<div id="${SAVING}" class="panel">
      ${saveForm(refused.typed?.['query'] ?? '', refused)}
    </div>`
  return {
    title: 'Saved searches',
    section: 'log',
    body: html`<p class="crumb"><a href="/log">Log</a> / saved searches</p>
      <h1>Saved searches</h1>
      <p class="muted">Everybody who sees the log sees them, in its line of filters.</p>
      ${saving} ${searchesFragment(view)}`,
  }
}

/** The list alone, in whose place it comes again after a change. */
export function searchesFragment({ searches, renamed }: SearchesView): Html {
  const way = html`Set filters in the <a href="/log">log</a>, then choose
    <em>Saved searches</em> above its list.`
  const list = searches.map((search) => {
    return searchCard(search, renamed?.id === search.id ? renamed.form : undefined)
  })
  return html`<div id="searches">${cards(list, 'No saved searches yet.', way)}</div>`
}

const REMOVED = 'It is removed for everybody. The events stay.'

function searchCard({ id, name, query }: Search, sent: FormState | undefined): Html {
  const form = { id: `search-${id}`, typed: { name }, ...sent }
  const place = { target: '#searches' }
  const renaming = postForm(
    { class: 'stack', action: `/searches/${id}/rename`, ...place },
    html`${refusal(form)} ${field(form, 'name', 'Name', { required: true })}
      <p>${submit(html`Rename <span class="hidden">${name}</span>`, { id: `rename-${id}` })}</p>`,
  )
  const removal = { action: `/searches/${id}/remove`, ...place }
  return html`<article class="panel card" aria-labelledby="name-of-${id}">
    <h2 id="name-of-${id}">
      <a href="/log?${query}"><bdi>${name}</bdi></a>
    </h2>
    ${facts({ Filters: html`<bdi>${filtersText(query)}</bdi>` })}
    ${disclosed('Rename…', renaming, { open: sent !== undefined })}
    ${disclosed('Remove…', removalForm('Remove', name, REMOVED, removal))}
  </article>`
}
