import type { Change } from '../../../../db/links/names/history.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState, View } from '../../../../kernel/http/view.ts'
import {
  checkbox,
  field,
  hiddenField,
  postForm,
  radios,
  refusal,
  renewedBy,
  submit,
  VERBATIM,
  type Form,
} from '../../../form.ts'
import { contentView } from '../../../layout.ts'
import { attributes, button } from '../../../parts.ts'
import { shortName, type ShortLinks } from './links.ts'
import { changeList, versionTable, type FieldTexts } from '../history.ts'
import { EXAMPLE_AREA, exampleFields, type TypedExample } from './places.ts'

/** The form of a new link, or of one that is edited. */
export interface LinkFormView {
  /** The link that is edited; null for a new one. */
  link: { id: string; slug: string } | null
  form: FormState
  /** What somebody else has made of the link since its form was opened. */
  stale?: StaleForm
  /** Whether the link that was edited has been deleted: what was typed may become a new one. */
  isGone?: boolean
  short: ShortLinks
  /** What the field of tags offers. */
  tags: readonly string[]
  /** The free slug most like the one that was refused. */
  freeSlug: string | undefined
  typedExample: TypedExample
}

interface StaleForm {
  /** The fields as stored, in the form's texts. */
  stored: FieldTexts
  /** Newest first. */
  changes: readonly Change[]
}

const VISIBILITIES = [
  ['public', 'Public', 'everybody who is signed in finds it in the lists'],
  [
    'private',
    'Private',
    'everybody who knows the name may follow it; it is listed to owners, recipients and admins',
  ],
  ['secure', 'Secure', 'only owners, recipients and admins may follow it, signed in'],
] as const

const URL_HINT =
  'An http:// or https:// address; https:// may be left out. {1} stands for the first further ' +
  'path segment of a visit, {*} for all that no number takes, {1:main} for the first one or main. ' +
  '{user} stands for the visitor’s e-mail address: that site is told who visits.'

/** `/-/new` and `/-/links/{id}/edit`; the form alone is the reply to a refused post. */
export function linkFormView(view: LinkFormView): View {
  const { link, short } = view
  const form = linkForm(view)
  if (link === null) {
    const above = html`<h1>New link</h1>`
    return contentView({ title: 'New link', section: 'new', above }, form)
  }
  const above = html`<p class="crumb"><a href="/-/links/${link.id}">${link.slug}</a></p>
    <h1>Edit ${shortName(short, link.slug)}</h1>`
  return contentView({ title: `Edit ${link.slug}`, section: 'links', above }, form)
}

function linkForm(view: LinkFormView): Html {
  const { link, form: state, stale, isGone, tags, typedExample, short } = view
  const form: Form = { ...state, id: 'link' }
  const typed = form.typed ?? {}
  const slug = link?.slug ?? typed['slug'] ?? ''
  // The focus goes to the first field to fill in; in a refused form, to the first refused field,
  // or to what somebody else has changed meanwhile.
  const isFresh = form.fault === undefined && stale === undefined
  const first = isFresh && (slug === '' ? 'slug' : 'url')
  const page = link === null ? '/-/' : `/-/links/${link.id}`
  const action = link === null ? '/-/new?generate=true' : `${page}/edit`
  const label = link === null ? 'Create link' : 'Save link'
  const url = { hint: URL_HINT, inputmode: 'url', autofocus: first === 'url' }
  return postForm(
    { id: 'link-form', class: 'panel stack', action, target: '#link-form' },
    html`${isGone === true && html`<p class="refused" role="alert">${GONE}</p>`}
      ${stale !== undefined && staleNote(stale, typed)}
      ${refusal(form)}
      ${link === null && slugField(form, view, first === 'slug')}
      ${field(form, 'url', 'Leads to', url)}
      <div${attributes(EXAMPLE_AREA)}>${exampleFields(short, typedExample)}</div>
      ${field(form, 'title', 'Title', { hint: 'What people see in lists; may be empty' })}
      ${field(form, 'description', 'Description', {
        hint: 'For those who want to know more; may be empty',
        rows: 3,
      })}
      ${field(form, 'tags', 'Tags', {
        hint: 'Separated by commas, 20 at most',
        suggestions: tags,
        ...renewedBy('/-/complete/tags', 'link-tags'),
      })}
      ${field(form, 'aliases', 'Further names', {
        hint: 'They lead to the same address. Separated by commas, 20 at most; may be empty',
        ...VERBATIM,
      })}
      ${radios(form, 'visibility', 'Visibility', VISIBILITIES)} ${appendField(form, slug)}
      ${endFields(form)}
      <p class="actions">
        ${submit(label, { class: 'primary', id: 'save-link' })}
        <a href="${page}">Cancel</a>
      </p>
      ${link !== null && keptFields(link.slug, typed)}`,
  )
}

/** What an edited link's form carries along: the slug, in case that the link is deleted. */
function keptFields(slug: string, { version }: Readonly<Record<string, string>>): Html {
  return html`${hiddenField('slug', slug)}
  ${version !== undefined && hiddenField('version', version)}`
}

function appendField(form: Form, slug: string): Html {
  const label = html`<strong>Append it</strong> – a visit of
    <code><bdi>${slug === '' ? 'slug' : slug}</bdi>/a/b</code> goes to the address with
    <code>/a/b</code> at its end`
  return html`<fieldset>
    <legend>Further path</legend>
    ${checkbox(form, 'append_path', label, { id: 'link-append' })}
  </fieldset>`
}

/** What ends the visits of a link. */
function endFields(form: Form): Html {
  return html`<fieldset>
    <legend>End of visits</legend>
    <div class="filter">
      ${field(form, 'expires_at', 'Ends (UTC)', {
        type: 'datetime-local',
        step: 'any',
        width: 'half',
        hint: 'Empty: never',
      })}
      ${field(form, 'max_visits', 'Limit of visits', {
        type: 'number',
        min: 1,
        width: 'half',
        hint: 'In all; empty: no limit',
      })}
    </div>
    ${checkbox(form, 'archived', html`<strong>Archived</strong> – it leads nowhere, and is kept`)}
  </fieldset>`
}

/** While one types, the server tells whether the slug is free. */
function slugField(form: Form, { short, freeSlug }: LinkFormView, autofocus: boolean): Html {
  const control = field(form, 'slug', 'Short name', {
    prefix: `${short.shown}/`,
    hint: '2 to 64 of a-z, 0-9 and -; if it is empty, one is made up',
    ...VERBATIM,
    'hx-get': '/-/slug',
    'hx-trigger': 'input changed delay:250ms',
    'hx-target': '#slug-state',
    'hx-swap': 'innerHTML',
    'hx-sync': 'this:replace',
    autofocus,
  })
  return html`${control}
    <p id="slug-state" class="hint" role="status">${freeNote(freeSlug)}</p>`
}

const GONE =
  'Somebody has deleted this link since you opened this form, so nothing was saved. ' +
  'What you typed is still here: create the link again, or leave this page.'

const STALE =
  'Somebody else has changed this link since you opened this form, so nothing was saved. ' +
  'What you typed is still here: save again to replace what is stored.'

/** What was typed beside what is stored, where they differ. */
function staleNote({ stored, changes }: StaleForm, typed: FieldTexts): Html {
  return html`<div class="refused" role="alert" tabindex="-1" autofocus>
    <p>${STALE}</p>
    ${versionTable(['You typed', typed], ['Stored now', stored])}
    <p>Last changes:</p>
    ${changeList(changes)}
  </div>`
}

/** What is said of a slug. */
export interface SlugNote {
  isFree: boolean
  text: string
  /** The link that has it, if the visitor may read that one. */
  link?: string | undefined
  /** The slug most like it that is free. */
  free?: string | undefined
}

/** `/-/slug`: the words under the field. */
export function slugNote({ isFree, text, link, free }: SlugNote): Html {
  return html`<span class="${isFree ? 'free' : 'taken'}">${text}</span>${
      link !== undefined && html` <a href="/-/links/${link}">See the link</a>`
    }
    ${freeNote(free)}`
}

/** A slug that may be taken instead; with script, a button puts it into the field. */
function freeNote(slug: string | undefined): Html | false {
  if (slug === undefined) return false
  const own = { class: 'js-only', 'data-fill': 'link-slug', value: slug }
  return html`<strong>${slug}</strong> is free. ${button(`Use ${slug}`, own)}`
}
