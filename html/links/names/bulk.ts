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
  renewedBy,
  sentence,
  submit,
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

const PATH = '/-/admin/links'

/** What `/-/admin/links` shows. */
export interface AllLinksView extends LinkSlice {
  filter: { q: string; owner: string }
  /** E-mail addresses that the filter offers. */
  people: readonly string[]
  /** How many links there are in all; null where a filter leaves some out. */
  count: string | null
  /** Whether all rows are chosen from the start. */
  areChosen: boolean
  /** Address of this page with all rows chosen, or none. */
  choose: string
}

/** `/-/admin/links`: all links, or those of an owner or whose slug begins with a text. */
export function allLinksView(view: AllLinksView): View {
  const { filter, people, links, next } = view
  const title = 'Links of everybody'
  const above = html`<h1>${title}</h1>
    ${adminTabs('links')} ${searchForm(filter, people)}`
  const table = listTable({
    bodyId: 'all-links',
    caption: 'All links by slug',
    columns: ['Choose', 'Link', 'Leads to', 'Visibility', 'Owner', 'Change'],
    kind: 'admin',
    rows: links.map((link) => adminRow(link, view)),
    more: { next },
  })
  const content = html`<div id="admin-links">
    ${links.length === 0 ? nothing(filter) : chosenForm(view, table)}
  </div>`
  return contentView({ title, section: 'admin', above }, content)
}

function searchForm({ q, owner }: AllLinksView['filter'], people: readonly string[]): Html {
  const trigger = 'input changed delay:300ms target:input'
  const form = { id: 'filter', typed: { q, owner } }
  return filterForm(
    'All links',
    { path: PATH, results: 'admin-links', trigger },
    html`${field(form, 'q', 'Slug begins with', { type: 'search', maxlength: 64, ...VERBATIM })}
    ${field(form, 'owner', 'Owner', {
      ...VERBATIM,
      maxlength: 254,
      inputmode: 'email',
      suggestions: people,
      ...renewedBy('/-/complete/people', 'filter-owner'),
    })}
    ${submit('Search', {})}`,
  )
}

function nothing({ q, owner }: AllLinksView['filter']): Html {
  if (q === '' && owner === '') return emptyState('No links yet.')
  const way = html`<a href="${PATH}">Show all links</a>`
  if (owner === '') return emptyState(`No slug begins with “${q}”.`, way)
  return emptyState('No links of this owner match.', way)
}

/** The table as a form: the next page asks what to do with the chosen rows. */
function chosenForm({ count, areChosen, choose }: AllLinksView, table: Html): Html {
  const all = html`<a href="${choose}">${areChosen ? 'Choose none' : 'Choose all rows'}</a>`
  return html`<form method="post" action="${PATH}/chosen">
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

function adminRow(link: Link, { short, areChosen }: AllLinksView): Html {
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
export interface ChosenView {
  action: BulkAction
  links: readonly Link[]
  /** How many chosen links were deleted meanwhile. */
  missing: number
  form: FormState
  /** E-mail addresses that the form offers. */
  people: readonly string[]
  short: ShortLinks
}

/** `/-/admin/links/chosen`: asks before any link is changed. */
export function chosenView(view: ChosenView): View {
  const { action, links, missing } = view
  const what = countText(links.length, 'link')
  const title = action === 'delete' ? `Delete ${what}?` : `Add a co-owner to ${what}`
  const list = html`<ul class="chosen">
    ${links.map((link) => chosenItem(link, view.short))}
  </ul>`
  const form = action === 'delete' ? deleteForm(view, what) : ownersForm(view, what)
  const content = html`${missing > 0 && html`<p class="note">${goneText(missing)}</p>`}
  ${links.length > 0 && form} ${list}`
  return chosenPart(title, content)
}

/** The part that asks, and then reports. The title of a report gets the focus. */
function chosenPart(title: string, content: Html, isDone = false): View {
  const above = html`<p class="crumb"><a href="${PATH}">Links of everybody</a></p>`
  const part = html`<section id="chosen" aria-labelledby="chosen-title">
    <h1 id="chosen-title" tabindex="-1" ${isDone && 'autofocus'}>${title}</h1>
    <div class="panel stack">${content}</div>
  </section>`
  return contentView({ title, section: 'admin', above }, part)
}

function goneText(count: number): string {
  const verb = count === 1 ? 'is' : 'are'
  return `${countText(count, 'chosen link')} ${verb} gone meanwhile.`
}

function chosenItem({ id, slug, title, owners }: Link, short: ShortLinks): Html {
  return html`<li>
    <a href="/-/links/${id}">${shortName(short, slug)}</a>
    ${title !== '' && html`<bdi>${title}</bdi>`}
    <span class="muted">of <bdi>${primaryOwner(owners)}</bdi></span>
  </li>`
}

function deleteForm({ links }: ChosenView, what: string): Html {
  const label = `Delete ${what}`
  return html`<p>
      Visitors will get an error, and anybody may take their names. For some days each of them can
      be restored under <a href="/-/deleted">Deleted links</a>.
    </p>
    ${postForm(
      { class: 'stack', action: `${PATH}/delete`, target: '#chosen' },
      html`${idFields(links)} ${lastLine(label, { class: 'danger', id: 'delete-links' })}`,
    )}`
}

function ownersForm({ links, form: state, people }: ChosenView, what: string): Html {
  const form = { ...state, id: 'owners' }
  const email = { inputmode: 'email', placeholder: 'name@example.com', ...VERBATIM }
  return html`<p>A co-owner may change and delete a link. Its primary owner stays.</p>
    ${postForm(
      { class: 'stack', action: `${PATH}/owners`, target: '#chosen' },
      html`${idFields(links)}
      ${field(form, 'email', 'Co-owner', {
        ...email,
        suggestions: people,
        ...renewedBy('/-/complete/members', 'owners-email'),
      })}
      ${lastLine(`Add to ${what}`, { class: 'primary', id: 'add-owner' })}`,
    )}`
}

function idFields(links: readonly Link[]): readonly Html[] {
  return links.map(({ id }) => hiddenField('links', id))
}

function lastLine(label: string, own: { class: string; id: string }): Html {
  return html`<p class="actions">${submit(label, own)} <a href="${PATH}">Cancel</a></p>`
}

/** What was done with the chosen links, and what was refused and why. */
export interface BulkReportView extends BulkReport {
  /** Such as `Deleted` or `ann@example.com is a co-owner of`. */
  done: readonly Link[]
  words: string
  short: ShortLinks
}

export function bulkReportView({ done, refused, words, short }: BulkReportView): View {
  const title = `${words} ${countText(done.length, 'link')}`
  const reasons = refused.map(({ slug, reason }) => {
    const name = slug === undefined ? 'A link' : shortName(short, slug)
    return html`<li>${name}: ${sentence(reason)}</li>`
  })
  const content = html`${
    done.length > 0 && html`<p>${done.map(({ slug }) => html`<code>${slug}</code> `)}</p>`
  }
  ${
    refused.length > 0 &&
    html`<div class="refused">
      <p>Not changed: ${countText(refused.length, 'link')}</p>
      <ul>
        ${reasons}
      </ul>
    </div>`
  }`
  return chosenPart(title, content, true)
}
