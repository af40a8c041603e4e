import type { Visibility, Change } from '../../db/links/links.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import { linksPage, type Viewer } from './layout.ts'
import { shortName, type ShortLinks } from './links.ts'
import { changeList } from './members.ts'

/** The form of a new link, or of one that is edited. */
export interface LinkFormView {
  /** The link that is edited; null for a new one. */
  readonly id: string | null
  /** The version of the link that the form replaces; null for a new one. */
  readonly version: string | null
  readonly fields: LinkFormFields
  /** Null unless somebody else has changed the link. */
  readonly stale: StaleForm | null
  /** What is wrong, by field; under '' what is about no field of the form. */
  readonly problems: Readonly<Record<string, string>>
  readonly short: ShortLinks
}

/** `/-/new` and `/-/links/{id}/edit`. */
export function linkFormPage(viewer: Viewer, view: LinkFormView): Html {
  const { id, fields, short } = view
  const heading = id === null ? html`New link` : html`Edit ${shortName(short, fields.slug)}`
  const title = id === null ? 'New link' : `Edit ${fields.slug}`
  const body = html`${
      id !== null && html`<p class="crumb"><a href="/-/links/${id}">${fields.slug}</a></p>`
    }
    <h1>${heading}</h1>
    ${linkForm(view)}`
  return linksPage(viewer, { title, section: id === null ? 'new' : 'links', body })
}

/** The form alone: the answer to a refused post, with what was typed. */
export function linkForm(view: LinkFormView): Html {
  const { id, fields, problems } = view
  const action = id === null ? '/-/new' : `/-/links/${id}/edit`
  // The first field that is wrong gets the focus; where none is, the one to begin with.
  const first = FIELDS.find((name) => name in problems) ?? (fields.slug === '' ? 'slug' : 'url')
  const at = (name: string): Place => ({ name, problem: problems[name], focus: name === first })
  return html`<form
    id="link-form"
    class="panel stack"
    method="post"
    action="${action}"
    hx-post="${action}"
    hx-target="#link-form"
    hx-swap="outerHTML"
  >
    ${view.version !== null && html`<input type="hidden" name="version" value="${view.version}" />`}
    ${view.stale !== null && staleNote(view.stale, fields)}
    ${problems[''] !== undefined && html`<p class="refused" role="alert">${problems['']}</p>`}
    ${id === null && slugField(at('slug'), view)}
    ${text(at('url'), 'Leads to', fields.url, URL_HINT, html`required inputmode="url"`)}
    ${text(at('title'), 'Title', fields.title, 'What people see in lists; may be empty')}
    <div class="field">
      <label for="link-description">Description</label>
      <textarea id="link-description" name="description" rows="3" ${described(at('description'))}>
${fields.description}</textarea>
      ${message(at('description'), 'For those who want to know more; may be empty')}
    </div>
    ${text(at('tags'), 'Tags', fields.tags, 'Separated by commas, 20 at most')}
    ${visibilities(at('visibility'), fields.visibility)}
    <fieldset>
      <legend>Further path</legend>
      <label class="choice">
        <input
          type="checkbox"
          name="append_path"
          value="true"
          ${fields.append_path && html`checked`}
        />
        <span>
          <strong>Append it</strong> – a visit of
          <code><bdi>${fields.slug || 'slug'}</bdi>/a/b</code> goes to the address with
          <code>/a/b</code> at its end
        </span>
      </label>
    </fieldset>
    <p class="actions">
      <button type="submit" class="primary" id="save-link">
        ${id === null ? 'Create link' : 'Save link'}
      </button>
      <a href="${id === null ? '/-/' : `/-/links/${id}`}">Cancel</a>
    </p>
  </form>`
}

const FIELDS: readonly string[] = ['slug', 'url', 'title', 'description', 'tags', 'visibility']

const URL_HINT = html`Must begin with <code>http://</code> or <code>https://</code>.
  <code>{1}</code> stands for the first further path segment of a visit, <code>{*}</code> for all
  that no number takes.`

/** A field, what is wrong with it, and whether the focus goes to it. */
interface Place {
  readonly name: string
  readonly problem: string | undefined
  readonly focus: boolean
}

function described({ name, problem, focus }: Place): Html {
  const ids = `link-${name}-hint${problem === undefined ? '' : ` link-${name}-refused`}`
  return html`aria-describedby="${ids}" ${problem !== undefined && html`aria-invalid="true"`}
  ${focus && html`autofocus`}`
}

function message({ name, problem }: Place, hint: Printable): Html {
  return html`<p id="link-${name}-hint" class="hint">${hint}</p>
    ${problem !== undefined && html`<p id="link-${name}-refused" class="refused">${problem}</p>`}`
}

function text(
  place: Place,
  label: string,
  value: string,
  hint: Printable,
  more: Printable = '',
): Html {
  const { name } = place
  return html`<div class="field">
    <label for="link-${name}">${label}</label>
    <input
      id="link-${name}"
      name="${name}"
      value="${value}"
      ${more}
      autocomplete="off"
      ${described(place)}
    />
    ${message(place, hint)}
  </div>`
}

/** As one types, the server tells whether the slug is free. */
function slugField(place: Place, { fields, short }: LinkFormView): Html {
  return html`<div class="field">
    <label for="link-slug">Short name</label>
    <div class="prefixed">
      <span class="prefix" aria-hidden="true">${short.keyword}/</span>
      <input
        id="link-slug"
        name="slug"
        value="${fields.slug}"
        required
        autocomplete="off"
        autocapitalize="off"
        spellcheck="false"
        hx-get="/-/slug"
        hx-trigger="input changed delay:250ms"
        hx-target="#slug-state"
        hx-swap="innerHTML"
        hx-sync="this:replace"
        ${described(place)}
      />
    </div>
    <p id="slug-state" class="hint" role="status"></p>
    ${message(place, '2 to 64 of a-z, 0-9 and -. It can’t be changed later.')}
  </div>`
}

const VISIBILITIES: readonly (readonly [Visibility, string, string])[] = [
  ['public', 'Public', 'everybody who is signed in finds it in the lists'],
  [
    'private',
    'Private',
    'whoever knows the name may follow it; it is listed to owners, recipients and admins',
  ],
  ['secure', 'Secure', 'only owners, recipients and admins may follow it, signed in'],
]

function visibilities({ problem }: Place, chosen: string): Html {
  return html`<fieldset>
    <legend>Visibility</legend>
    ${problem !== undefined && html`<p class="refused">${problem}</p>`}
    ${VISIBILITIES.map(
      ([value, label, about]) =>
        html`<label class="choice">
          <input
            type="radio"
            name="visibility"
            value="${value}"
            ${value === chosen && html`checked`}
          />
          <span><strong>${label}</strong> – ${about}</span>
        </label>`,
    )}
  </fieldset>`
}

/** What is said of a slug as it is typed. */
export type SlugState =
  | { readonly kind: 'empty' }
  | { readonly kind: 'free' }
  | { readonly kind: 'refused'; readonly message: string }
  /** The id of the link that has it, where the visitor may read it. */
  | { readonly kind: 'taken'; readonly id: string | null }

/** `/-/slug`: the words under the field. */
export function slugState(short: ShortLinks, slug: string, state: SlugState): Html {
  switch (state.kind) {
    case 'empty':
      return html``
    case 'free':
      return html`<span class="free">${short.keyword}/${slug} is free.</span>`
    case 'refused':
      return html`<span class="taken">${state.message}</span>`
    case 'taken':
      return html`<span class="taken">${short.keyword}/${slug} is taken.</span> ${
          state.id !== null && html`<a href="/-/links/${state.id}">See the link</a>`
        }`
  }
}

/** The fields of a link as they stand in its form: what is stored, or what was typed. */
export interface LinkFormFields {
  readonly slug: string
  readonly url: string
  readonly title: string
  readonly description: string
  /** Separated by commas. */
  readonly tags: string
  readonly visibility: string
  readonly append_path: boolean
}

export const EMPTY_FIELDS: LinkFormFields = {
  slug: '',
  url: '',
  title: '',
  description: '',
  tags: '',
  visibility: 'public',
  append_path: false,
}

/** What somebody else has made of a link since its form was opened. */
export interface StaleForm {
  readonly stored: LinkFormFields
  /** Newest first. */
  readonly changes: readonly Change[]
}

/** What was typed stays in the form; what is stored stands here, where it is something else. */
export function staleNote({ stored, changes }: StaleForm, typed: LinkFormFields): Html {
  const different = STORED_FIELDS.filter(([name]) => stored[name] !== typed[name])
  return html`<div class="refused" role="alert">
    <p>
      Somebody else has changed this link since you opened this form, so nothing was saved. What you
      typed is still here: save again to replace what is stored.
    </p>
    ${
      different.length > 0 &&
      html`<p>Stored now:</p>
        <ul>
          ${different.map(
            ([name, label]) =>
              html`<li>
                ${label}: <q><bdi>${storedText(stored[name])}</bdi></q>
              </li>`,
          )}
        </ul>`
    }
    <p>Last changes:</p>
    ${changeList(changes)}
  </div>`
}

const STORED_FIELDS: readonly (readonly [keyof LinkFormFields, string])[] = [
  ['url', 'Leads to'],
  ['title', 'Title'],
  ['description', 'Description'],
  ['tags', 'Tags'],
  ['visibility', 'Visibility'],
  ['append_path', 'Further path'],
]

function storedText(value: string | boolean): string {
  if (typeof value === 'string') return value
  return value ? 'append it' : 'do not append it'
}
