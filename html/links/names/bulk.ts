import type { Link } from '../../../db/links/names/links.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import type { BulkReport } from '../../../services/links/names/bulk.ts'
import {
  checkbox,
  field,
  filterForm,
  hiddenField,
  postForm,
  refusal,
  renewedBy,
  sentence,
  submit,
  submitLine,
  VERBATIM,
} from '../../form.ts'
import { contentView } from '../../layout.ts'
import {
  breakable,
  countLine,
  countText,
  emptyState,
  listTable,
  rowLink,
  tableRow,
} from '../../parts.ts'
import { adminTabs } from '../layout.ts'
import {
  primaryOwner,
  shortName,
  visibilityBadge,
  type LinkSlice,
  type ShortLinks,
} from './links/links.ts'

/** Where many links are changed at once. */
export interface BulkPlace {
  path: string
  title: string
  /** Its entry of the navigation. */
  section: string
  caption: string
}

/** The links of everybody, for admins, and the links that a user owns or co-owns. */
export const BULK_PLACES = {
  all: {
    path: '/-/admin/links',
    title: 'Links of everybody',
    section: 'admin',
    caption: 'All links by slug',
  },
  own: {
    path: '/-/own',
    title: 'Change several of my links',
    section: 'links',
    caption: 'Links that I own or co-own by slug',
  },
} as const satisfies Readonly<Record<string, BulkPlace>>

/** A list of links that can be chosen. */
interface BulkListView extends LinkSlice {
  place: BulkPlace
  filter: { q: string; owner: string }
  /** E-mail addresses that the filter by owner offers; undefined where there is no such filter. */
  people?: readonly string[] | undefined
  /** The form that gives all links of the filtered owner away; undefined without such an owner. */
  move?: MoveView | undefined
  /** How many links there are in all; null where a filter leaves some out. */
  count: string | null
  /** Whether all rows are chosen from the start. */
  areChosen: boolean
  /** Address of this page with all rows chosen, or none. */
  choose: string
}

/** `/-/admin/links` and `/-/own`: links by slug, or those whose slug begins with a text. */
export function bulkListView(view: BulkListView): View {
  const { place, links, next } = view
  const { title, section, caption } = place
  const mine = html`<p class="crumb"><a href="/-/">My links</a></p>`
  const above = html`${section === 'links' && mine}
    <h1>${title}</h1>
    ${section === 'admin' && adminTabs('links')} ${searchForm(view)}`
  const below = view.move && moveForm(view.move)
  const table = listTable({
    bodyId: 'all-links',
    caption,
    columns: ['Choose', 'Link', 'Leads to', 'Visibility', 'Owner', 'Change'],
    kind: 'admin',
    rows: links.map((link) => adminRow(link, view)),
    more: { next },
  })
  const content = html`<div id="admin-links">
    ${links.length === 0 ? nothing(view) : chosenForm(view, table)}
  </div>`
  return contentView({ title, section, above, below }, content)
}

/** Whose links are to go to somebody else. */
interface MoveView {
  from: string
  form: FormState
  /** E-mail addresses that the form offers. */
  people: readonly string[]
}

/** Gives all that somebody has in links to one other person. */
function moveForm({ from, form: state, people }: MoveView): Html {
  const form = { ...state, id: 'move' }
  return postForm(
    {
      id: 'move-links',
      class: 'panel stack',
      action: '/-/admin/links/move',
      target: '#move-links',
    },
    html`${refusal(form)}
      <h2>Move all links of <bdi>${breakable(from)}</bdi></h2>
      <p class="hint">
        Somebody else gets each link that this user owns, co-owns or may read, deleted ones as
        well. The user stays: <a href="/-/admin/users">disable it there</a>.
      </p>
      ${hiddenField('from', from)}
      ${field(form, 'email', 'Move them to', {
        type: 'email',
        placeholder: 'name@example.com',
        suggestions: people,
        ...renewedBy('/-/complete/people', 'move-email'),
      })}
      ${submitLine('Move links', 'move-button')}`,
  )
}

/** The form alone, as it was refused. */
export function moveView(view: MoveView): View {
  const { title, section, path } = BULK_PLACES.all
  const above = html`<p class="crumb"><a href="${path}">${title}</a></p>
    <h1>Move links</h1>`
  return contentView({ title, section, above }, moveForm(view))
}

function searchForm({ place, filter, people }: BulkListView): Html {
  const trigger = 'input changed delay:300ms target:input'
  const form = { id: 'filter', typed: filter }
  const byOwner =
    people !== undefined &&
    field(form, 'owner', 'Owner', {
      ...VERBATIM,
      maxlength: 254,
      inputmode: 'email',
      suggestions: people,
      ...renewedBy('/-/complete/people', 'filter-owner'),
    })
  return filterForm(
    'All links',
    { path: place.path, results: 'admin-links', trigger },
    html`${field(form, 'q', 'Slug begins with', { type: 'search', maxlength: 64, ...VERBATIM })}
    ${byOwner} ${submit('Search', {})}`,
  )
}

function nothing({ place, filter: { q, owner } }: BulkListView): Html {
  if (q === '' && owner === '') return emptyState('No links yet.')
  const way = html`<a href="${place.path}">Show all links</a>`
  if (owner === '') return emptyState(`No slug begins with “${q}”.`, way)
  return emptyState('No links of this owner match.', way)
}

/** The table as a form: the next page asks what to do with the chosen rows. */
function chosenForm({ place, count, areChosen, choose }: BulkListView, table: Html): Html {
  const all = html`<a href="${choose}">${areChosen ? 'Choose none' : 'Choose all'}</a>`
  return html`<form method="post" action="${place.path}/chosen">
    <div class="title-line">
      ${countLine(count)}
      <p class="actions">
        ${all} ${submit('Add a co-owner…', { name: 'action', value: 'owners' })}
        ${submit('Delete…', { class: 'danger', name: 'action', value: 'delete' })}
      </p>
    </div>
    ${table}
  </form>`
}

const CHOSEN = { id: 'chosen' }

function adminRow(link: Link, { short, areChosen }: BulkListView): Html {
  const { id, slug, title, url, owners, visibility } = link
  const path = `/-/links/${id}`
  const hidden = html`<span class="hidden">${slug}</span>`
  return tableRow(
    { 'data-slug': slug },
    {
      choose: checkbox(CHOSEN, 'links', html`<span class="hidden">Choose ${slug}</span>`, {
        value: id,
        checked: areChosen,
      }),
      type: html`${rowLink(path, shortName(short, slug))}
      ${title !== '' && html`<bdi class="detail title">${title}</bdi>`}`,
      target: html`<bdi class="clamp">${url}</bdi>`,
      kind: visibilityBadge(visibility),
      owner: html`<bdi>${breakable(primaryOwner(owners) ?? '')}</bdi>`,
      edit: html`<span class="actions">
        <a href="${path}/edit">Edit ${hidden}</a>
        <a href="${path}/delete">Delete ${hidden}</a>
      </span>`,
    },
  )
}

/** What may be done with the chosen links. */
export type BulkAction = 'delete' | 'owners'

/** The chosen links, and the form that changes them. */
interface ChosenView {
  place: BulkPlace
  action: BulkAction
  links: readonly Link[]
  /** How many chosen links are deleted meanwhile, or not the visitor's to change. */
  missing: number
  /** The ids of chosen links that are asked for once these are changed. */
  rest: readonly string[]
  form: FormState
  /** E-mail addresses that the form offers. */
  people: readonly string[]
  short: ShortLinks
}

/** Asks before any link is changed. */
export function chosenView(view: ChosenView): View {
  const { place, action, links, missing, rest } = view
  const what = countText(links.length, 'link')
  const title = action === 'delete' ? `Delete ${what}?` : `Add a co-owner to ${what}`
  const others = html`<p class="note">
    ${countText(rest.length, 'more link')} will be asked for in the next step.
  </p>`
  const list = html`<ul class="chosen">
    ${links.map((link) => chosenItem(link, view.short))}
  </ul>`
  const form = action === 'delete' ? deleteForm(view, what) : ownersForm(view, what)
  const next = goOnForm({ place, action, rest, email: view.form.typed?.['email'] })
  const content = html`${missing > 0 && html`<p class="note">${goneText(missing)}</p>`}
  ${rest.length > 0 && links.length > 0 && others} ${links.length > 0 ? form : next} ${list}`
  return chosenPart(place, title, content)
}

/** Asks for the chosen links that are left. */
interface Rest {
  place: BulkPlace
  action: BulkAction
  rest: readonly string[]
  /** The co-owner of the links before. */
  email?: string | undefined
}

function goOnForm({ place, action, rest, email }: Rest): Html | false {
  const label = `Go on with the other ${countText(rest.length, 'link')}…`
  return (
    rest.length > 0 &&
    postForm(
      { class: 'stack', action: `${place.path}/chosen`, target: '#chosen' },
      html`${hiddenField('action', action)} ${idFields('links', rest)}
      ${email !== undefined && hiddenField('email', email)}
      ${lastLine(place, label, { class: 'primary', id: 'go-on' })}`,
    )
  )
}

/** The part that asks, and then reports. The title of a report gets the focus. */
function chosenPart(place: BulkPlace, title: string, content: Html, isDone = false): View {
  const above = html`<p class="crumb"><a href="${place.path}">${place.title}</a></p>`
  const part = html`<section id="chosen" aria-labelledby="chosen-title">
    <h1 id="chosen-title" tabindex="-1" ${isDone && 'autofocus'}>${title}</h1>
    <div class="panel stack">${content}</div>
  </section>`
  return contentView({ title, section: place.section, above }, part)
}

function goneText(count: number): string {
  const [verb, whose] = count === 1 ? ['is', 'it is'] : ['are', 'they are']
  return `${countText(count, 'chosen link')} ${verb} gone meanwhile, or ${whose} not yours to change.`
}

function chosenItem({ id, slug, title, owners }: Link, short: ShortLinks): Html {
  return html`<li>
    <a href="/-/links/${id}">${shortName(short, slug)}</a>
    ${title !== '' && html`<bdi>${title}</bdi>`}
    <span class="muted">of <bdi>${primaryOwner(owners)}</bdi></span>
  </li>`
}

function deleteForm({ place, links, rest }: ChosenView, what: string): Html {
  const label = `Delete ${what}`
  return html`<p>
      Visitors will get an error, and anybody may take their names. For some days each of them can
      be restored under <a href="/-/deleted">Deleted links</a>.
    </p>
    ${postForm(
      { class: 'stack', action: `${place.path}/delete`, target: '#chosen' },
      html`${idFields('links', idsOf(links))} ${idFields('rest', rest)}
      ${lastLine(place, label, { class: 'danger', id: 'delete-links' })}`,
    )}`
}

function ownersForm(view: ChosenView, what: string): Html {
  const { place, links, rest, form: state, people } = view
  const form = { ...state, id: 'owners' }
  const email = { inputmode: 'email', placeholder: 'name@example.com', ...VERBATIM }
  return html`<p>A co-owner may change and delete a link. Its primary owner stays.</p>
    ${postForm(
      { class: 'stack', action: `${place.path}/owners`, target: '#chosen' },
      html`${idFields('links', idsOf(links))} ${idFields('rest', rest)}
      ${field(form, 'email', 'Co-owner', {
        ...email,
        suggestions: people,
        ...renewedBy('/-/complete/members', 'owners-email'),
      })}
      ${lastLine(place, `Add to ${what}`, { class: 'primary', id: 'add-owner' })}`,
    )}`
}

function idsOf(links: readonly Link[]): readonly string[] {
  return links.map(({ id }) => id)
}

function idFields(name: string, ids: readonly string[]): readonly Html[] {
  return ids.map((id) => hiddenField(name, id))
}

function lastLine(place: BulkPlace, label: string, own: { class: string; id: string }): Html {
  return html`<p class="actions">${submit(label, own)} <a href="${place.path}">Cancel</a></p>`
}

/** What was done with the chosen links, and what was refused and why. */
interface BulkReportView extends BulkReport, Rest {
  /** Such as `Deleted` or `ann@example.com is now a co-owner of`. */
  words: string
  short: ShortLinks
}

export function bulkReportView(view: BulkReportView): View {
  const { place, done, refused, words, short } = view
  const title = `${words} ${countText(done.length, 'link')}`
  const reasons = refused.map(({ slug, reason }) => {
    const name = slug === undefined ? 'A link' : shortName(short, slug)
    return html`<li>${name}: ${sentence(reason)}</li>`
  })
  const content = html`${goOnForm(view)}
  ${done.length > 0 && html`<p>${done.map(({ slug }) => html`<code>${slug}</code> `)}</p>`}
  ${
    refused.length > 0 &&
    html`<div class="refused">
      <p>Not changed: ${countText(refused.length, 'link')}</p>
      <ul>
        ${reasons}
      </ul>
    </div>`
  }`
  return chosenPart(place, title, content, true)
}
