import { html, type Html } from '../kernel/html.ts'
import type { View } from '../kernel/http/view.ts'
import type { DocMatch, DocPage } from '../services/docs.ts'
import { field, submit, VERBATIM } from './form.ts'
import { emptyState } from './parts.ts'

const SEARCH = '/-/docs/search'
/** Longest text that the search takes. */
export const MAX_SEARCH_TEXT = 200

/** A page of the documentation. */
export function docView({ title, content }: DocPage): View {
  const body = html`${docsHead('')}
    <article class="doc">${content}</article>`
  return { page: () => ({ title, section: 'none', body }) }
}

/** What a search of the documentation has found. */
export function docsSearchView(text: string, matches: readonly DocMatch[]): View {
  const found = matches.map(({ href, page, heading, excerpt }) => {
    return html`<li>
      <a href="${href}">${heading}</a>
      ${page !== heading && html`<span class="muted">${page}</span>`}
      <p class="detail">${excerpt}</p>
    </li>`
  })
  const body = html`${docsHead(text)}
    <h1>Search the documentation</h1>
    ${
      found.length === 0
        ? emptyState(text === '' ? 'Type what to look for.' : 'Nothing found.')
        : html`<ul class="places">
            ${found}
          </ul>`
    }`
  return { page: () => ({ title: 'Search the documentation', section: 'none', body }) }
}

/** The way to all pages, and the search. */
function docsHead(text: string): Html {
  const form = { id: 'docs', typed: { q: text } }
  const look = { type: 'search', maxlength: MAX_SEARCH_TEXT, ...VERBATIM }
  return html`<p class="crumb"><a href="/-/docs/">Documentation</a></p>
    <form class="filter" role="search" method="get" action="${SEARCH}">
      ${field(form, 'q', 'Search the documentation', look)} ${submit('Search')}
    </form>`
}
