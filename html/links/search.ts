import type { ListedLink, Suggestion } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { linksPage, type Viewer } from './layout.ts'

/** What was typed into the address bar and is no link's name. */
export interface SearchView {
  readonly name: string
  /** What followed the name, encoded, with its `/`; it is kept in the links. */
  readonly rest: string
  /** Whether a link could have this name, so that one may be made with it. */
  readonly canCreate: boolean
  readonly suggestions: readonly Suggestion[]
  /** Links in which the name occurs; null for who is not signed in. */
  readonly found: readonly ListedLink[] | null
}

/** Where a browser's search ends that leads to no link: what was meant perhaps. */
export function searchPage(viewer: Viewer, view: SearchView): Html {
  const { name, rest, canCreate, suggestions, found } = view
  const others = (found ?? []).filter(({ slug }) => suggestions.every((one) => one.slug !== slug))
  const all = `/-/all?${new URLSearchParams({ q: name }).toString()}`
  const body = html`<section class="panel stack">
    <h1>No link is named “${name}”</h1>
    ${suggestions.length > 0 && list('Did you mean', suggestions, rest)}
    ${others.length > 0 && list(`Links with “${name}”`, others, rest)}
    ${suggestions.length + others.length === 0 && html`<p>Nothing that you may see is like it.</p>`}
    ${
      viewer &&
      canCreate &&
      html`<form method="get" action="/-/new">
        <input type="hidden" name="slug" value="${name.toLowerCase()}" />
        <p><button type="submit" class="primary">Create “${name.toLowerCase()}”</button></p>
      </form>`
    }
    ${viewer && html`<p class="field"><a href="${all}">Search all links</a></p>`}
  </section>`
  return linksPage(viewer, { title: `Search for ${name}`, section: 'none', body })
}

function list(title: string, links: readonly Suggestion[], rest: string): Html {
  return html`<h2>${title}</h2>
    <ul class="suggestions">
      ${links.map(
        ({ slug, title: about }) =>
          html`<li>
            <a href="/${slug}${rest}">${slug}</a>${about !== '' && html` <bdi>${about}</bdi>`}
          </li>`,
      )}
    </ul>`
}
