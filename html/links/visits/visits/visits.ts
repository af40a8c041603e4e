import type { Suggestion, ListedLink } from '../../../../db/links/names/lists.ts'
import { html, type Html, render } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import { hiddenField, submit } from '../../../form.ts'
import { errorPage, type ShownFault } from '../../../layout.ts'
import { type Viewer, SEARCH_NAME } from '../../layout.ts'
import type { ShortLinks } from '../../names/links/links.ts'

/** A visit for which there is no link. */
interface UnknownView {
  /** The slug as the visitor wrote it. */
  asked: string
  /** The slug of a link that would answer this visit, or the nearest one that a link can have. */
  creates: string | undefined
  suggestions: readonly Suggestion[]
}

/** The 404 page of the resolver: what the visitor may have meant, and a way to create the link. */
export function unknownPage(viewer: Viewer, { asked, creates, suggestions }: UnknownView): Page {
  const body = html`<section class="panel error">
    <p class="muted"><code>404</code></p>
    <h1>
      ${asked === '' ? 'There is no such link' : html`There is no link “<bdi>${asked}</bdi>”`}
    </h1>
    ${suggestionList('Did you mean', suggestions)}
    ${viewer && creates !== undefined && createForm(creates)}
    ${viewer && html`<p><a href="/-/">Go to my links</a></p>`}
  </section>`
  return { title: '404 Not Found', section: 'none', body }
}

/** The page of a refused request. */
export function linksErrorPage(viewer: Viewer, fault: ShownFault): Page {
  const ways = viewer !== undefined && html`<a href="/-/">Go to my links</a>`
  return errorPage(fault, ways)
}

/** A name typed into the address bar that no link has. */
interface SearchView {
  name: string
  /** What followed the name, encoded, with its `/`; it is kept in the links. */
  rest: string
  /** Whether a link can have this name. */
  canCreate: boolean
  suggestions: readonly Suggestion[]
  /** Links that contain the name; null for visitors who are not signed in. */
  found: readonly ListedLink[] | null
}

/**
 * The page of a browser's search that finds no link of this name: what the visitor may have meant.
 */
export function searchPage(viewer: Viewer, view: SearchView): Page {
  const { name, rest, canCreate, suggestions, found } = view
  const suggested = new Set(suggestions.map(({ slug }) => slug))
  const others = (found ?? []).filter(({ slug }) => !suggested.has(slug))
  const all = `/-/all?${new URLSearchParams({ q: name }).toString()}`
  const body = html`<section class="panel stack">
    <h1>No link is named “${name}”</h1>
    ${suggestionList('Did you mean', suggestions, rest)}
    ${suggestionList(`Links with “${name}”`, others, rest)}
    ${suggestions.length + others.length === 0 && html`<p>No similar links.</p>`}
    ${viewer && canCreate && createForm(name.toLowerCase())}
    ${viewer && html`<p class="actions"><a href="${all}">Search all links</a></p>`}
  </section>`
  return { title: `Search for ${name}`, section: 'none', body }
}

/** Links with a heading, or nothing. `rest` is appended to each address. */
function suggestionList(heading: string, links: readonly Suggestion[], rest = ''): Html | false {
  if (links.length === 0) return false
  const items = links.map(({ slug, title }) => {
    const about = title !== '' && html` <bdi>${title}</bdi>`
    return html`<li><a href="/${slug}${rest}">${slug}</a>${about}</li>`
  })
  return html`<h2>${heading}</h2>
    <ul class="suggestions">
      ${items}
    </ul>`
}

/** A button that leads to the form of a new link with this slug. */
function createForm(slug: string): Html {
  return html`<form method="get" action="/-/new">
    ${hiddenField('slug', slug)}
    <p>${submit(`Create “${slug}”`)}</p>
  </form>`
}

/**
 * The OpenSearch 1.1 description of the service (an XML document). Its addresses begin with the
 * public one.
 */
export function searchDescription({ base, keyword }: ShortLinks): string {
  return render(
    html`<?xml version="1.0" encoding="UTF-8"?>
      <OpenSearchDescription
        xmlns="http://a9.com/-/spec/opensearch/1.1/"
        xmlns:moz="http://www.mozilla.org/2006/browser/search/"
      >
        <ShortName>${SEARCH_NAME}</ShortName>
        <Description
          >Short links of ${keyword}: type a link's name, and what should follow it</Description
        >
        <InputEncoding>UTF-8</InputEncoding>
        <image width="16" height="16" type="image/svg+xml">${base}/-/assets/icon.svg</image>
        <Url type="text/html" method="get" template="${base}/-/go?q={searchTerms}" />
        <Url
          type="application/x-suggestions+json"
          method="get"
          template="${base}/-/suggest?q={searchTerms}"
        />
        <Url
          type="application/opensearchdescription+xml"
          rel="self"
          template="${base}/-/opensearch.xml"
        />
        <moz:SearchForm>${base}/-/all</moz:SearchForm>
      </OpenSearchDescription> `,
  )
}
