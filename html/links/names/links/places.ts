import type { ListedLink } from '../../../../db/links/names/lists.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Example, Place } from '../../../../services/links/names/links/places.ts'
import { field, submit, VERBATIM } from '../../../form.ts'
import type { Attributes } from '../../../parts.ts'
import { shortName, type ShortLinks } from './links.ts'

/** What the form of a link shows of the address that is typed. */
export interface TypedExample {
  /** The address with the `https://` that was left out. */
  completed?: string | undefined
  /** Other links to the address that the viewer may see. */
  existing: readonly ExistingLink[]
  /** Of a link that takes a further path. */
  example?: Example | undefined
}

/** A link that leads where a new one is to lead. */
export interface ExistingLink extends Pick<ListedLink, 'id' | 'slug' | 'title'> {
  /** Whether the viewer may open its page. */
  mayRead: boolean
}

const SENT = ['slug', 'url', 'append_path'].map((name) => `#link-form [name=${name}]`)
const CHANGED = [
  'input delay:250ms from:#link-url',
  'input delay:250ms from:#link-slug',
  'change from:#link-append',
]
const RENEWED = {
  'hx-get': '/-/example',
  'hx-include': [...SENT, '#link-places input'].join(', '),
  'hx-sync': '#link-places:replace',
}

/** The fields of places in the form of a link, renewed while the address is typed. */
export const EXAMPLE_AREA: Attributes = {
  id: 'link-places',
  ...RENEWED,
  'hx-trigger': CHANGED.join(', '),
  'hx-swap': 'innerHTML',
}

/** A field replaces only what is below it: a replaced field would lose the focus. */
const LIVE_PLACE: Attributes = {
  ...RENEWED,
  'hx-trigger': 'input delay:250ms',
  'hx-target': '#link-example',
  'hx-select': '#link-example',
  'hx-swap': 'outerHTML',
}

/** What stands in the area: the whole address, a field for each place, and an example. */
export function exampleFields(
  short: ShortLinks,
  { completed, existing, example }: TypedExample,
): Html {
  return html`${existing.length > 0 && existingNote(short, existing)}
  ${
    completed !== undefined &&
    html`<p class="hint">
      It will lead to <code><bdi>${completed}</bdi></code>
    </p>`
  }
  ${
    example &&
    html`${placeFields(example.places, LIVE_PLACE)}
      <p id="link-example" class="hint" role="status">${exampleLine(short, example)}</p>`
  }`
}

function existingNote(short: ShortLinks, existing: readonly ExistingLink[]): Html {
  const names = existing.map(({ id, slug, title, mayRead }, at) => {
    const page = mayRead ? `/-/links/${id}` : `/${slug}+`
    const about = title !== '' && html` (<bdi>${title}</bdi>)`
    return html`${at > 0 && ', '}<a href="${page}">${shortName(short, slug)}</a>${about}`
  })
  return html`<p class="hint" role="status">This address has a link already: ${names}.</p>`
}

/** On the preview of a link: a field for each place, and where a visit with them leads. */
export function previewExample(short: ShortLinks, slug: string, example: Example): Html {
  const { isSample, location, path } = example
  const action = `/${slug}+`
  const isFollowed = !isSample && location !== undefined
  return html`<form
    class="places"
    method="get"
    action="${action}"
    hx-get="${action}"
    hx-trigger="input delay:250ms, submit"
    hx-target="#example"
    hx-select="#example"
    hx-swap="outerHTML"
    hx-sync="this:replace"
  >
    ${placeFields(example.places)}
    <p class="actions">${submit('Show the address', {})}</p>
    <div id="example" role="status">
      <p>${exampleLine(short, example)}</p>
      ${
        isFollowed &&
        html`<p>
          <a class="button" href="${path}" rel="noreferrer">Follow it with this path</a>
        </p>`
      }
    </div>
  </form>`
}

function placeFields(places: readonly Place[], live: Attributes = {}): Html {
  const fields = places.map(({ name, placeholder, sample, typed }) => {
    const label = placeholder ?? 'Further path'
    const form = { id: 'places', typed: { [name]: typed } }
    const own = { id: name, placeholder: sample, maxlength: 200, ...VERBATIM, ...live }
    return field(form, name, label, { ...own, width: 'half' })
  })
  return html`<div class="filter">${fields}</div>`
}

function exampleLine({ shown }: ShortLinks, { isSample, path, location }: Example): Html {
  const visit = html`<code>${shown}${path}</code>`
  if (location === undefined) return html`${visit} leads nowhere: the link takes no such path.`
  const leads = html`${visit} leads to <code><bdi>${location}</bdi></code>`
  return isSample ? html`For example, ${leads}` : leads
}
