import { html, type Html, type Printable } from '../kernel/html.ts'
import type { View } from '../kernel/http/view.ts'
import { capitalized, field, submit, VERBATIM } from './form.ts'
import { contentView, type Site } from './layout.ts'

/** How many things of a kind the palette shows. */
export const MAX_PLACES = 10
const MAX_TEXT = 200

/** Where the palette leads. */
export interface Place {
  href: string
  label: Printable
  detail?: Printable
}

/** Places of one kind, such as pages or providers. */
export interface PlaceGroup {
  title: string
  places: readonly Place[]
}

/** A page, or where something is done. */
interface NamedPlace extends Place {
  label: string
}

/** The pages and actions of a service whose names have all the words that were typed. */
export function placesOf(
  { navigation, services, service }: Pick<Site, 'navigation' | 'services' | 'service'>,
  actions: readonly NamedPlace[],
  text: string,
): readonly PlaceGroup[] {
  const others = services
    .filter(({ name }) => name !== service)
    .map(({ name, href }) => ({ href, label: capitalized(name), detail: 'service' }))
  return [
    { title: 'Pages', places: matching([...navigation, ...others], text) },
    { title: 'Actions', places: matching(actions, text) },
  ]
}

function matching(places: readonly NamedPlace[], text: string): readonly Place[] {
  return places.filter(({ label }) => hasWords(label, text)).slice(0, MAX_PLACES)
}

/** Whether a name has all words of a text. */
export function hasWords(name: string, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/)
  return words.every((word) => name.toLowerCase().includes(word))
}

/** The id that a text is, such as `12` or `#12`. */
export function idIn(text: string): number | undefined {
  const [, digits] = /^#?(\d{1,15})$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits)
}

/**
 * What the palette finds. The script shows the results in a dialog on Ctrl-K; without script this
 * is a page of links.
 */
export function paletteView(path: string, text: string, groups: readonly PlaceGroup[]): View {
  const form = { id: 'find', typed: { q: text } }
  const above = html`<h1>Search</h1>
    <form class="filter" role="search" method="get" action="${path}">
      ${field(form, 'q', 'Search for', { type: 'search', maxlength: MAX_TEXT, ...VERBATIM })}
      ${submit('Search')}
    </form>`
  const shown = groups.filter(({ places }) => places.length > 0)
  const content = html`<div id="palette-results">
    ${shown.length === 0 && html`<p class="empty">Nothing found.</p>`} ${shown.map(groupPart)}
  </div>`
  return contentView({ title: 'Search', section: 'none', above }, content)
}

function groupPart({ title, places }: PlaceGroup): Html {
  const id = `palette-${title.toLowerCase().replaceAll(' ', '-')}`
  const items = places.map(({ href, label, detail }) => {
    return html`<li>
      <a href="${href}">${label}</a>
      ${detail !== undefined && html`<span class="muted">${detail}</span>`}
    </li>`
  })
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    <ul class="places">
      ${items}
    </ul>
  </section>`
}
