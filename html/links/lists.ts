import type { ListedLink } from '../../db/links/lists.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { ListFilter } from '../../services/links/lists.ts'
import { attributes, emptyState, listTable, moreLink } from '../parts.ts'
import { filterChoice, filterForm, filterText, submit } from '../form.ts'
import type { Link } from '../../db/links/links.ts'
import type { User } from '../../db/links/users.ts'
import { adminTabs, linksPage, type Viewer } from './layout.ts'
import { linkCell, tagList, visibilityBadge, type ShortLinks } from './links.ts'

export type ListName = 'mine' | 'all'

const ROLES = [
  ['', 'Any'],
  ['owner', 'Owner'],
  ['co-owner', 'Co-owner'],
  ['recipient', 'Shared with me'],
] as const

const VISIBILITIES = [
  ['', 'Any'],
  ['public', 'Public'],
  ['private', 'Private'],
  ['secure', 'Secure'],
] as const

/** A list of links. */
export interface LinksView {
  readonly list: ListName
  readonly filter: ListFilter
  readonly links: readonly ListedLink[]
  /** Address of the next page. */
  readonly next: string | null
  /** The last slug that an unfinished search has examined; null when it is finished. */
  readonly searchedTo: string | null
  readonly short: ShortLinks
  readonly isAdmin: boolean
}

const TITLES: Readonly<Record<ListName, { title: string; section: string; about: string }>> = {
  mine: {
    title: 'My links',
    section: 'links',
    about: 'What you own, co-own, or were given to read.',
  },
  all: { title: 'All links', section: 'all', about: 'Public links and those you may see.' },
}

/** `/-/` and `/-/all`: links by slug. */
export function linksListPage(viewer: Viewer, view: LinksView): Html {
  const { title, section, about } = TITLES[view.list]
  const body = html`<div class="title-line">
      <h1>${title}</h1>
      <a href="/-/new">New link</a>
    </div>
    <p class="muted">${view.list === 'all' && view.isAdmin ? 'Every link there is.' : about}</p>
    ${listFilter(view.list, view.filter)} ${linksListFragment(view)}`
  return linksPage(viewer, { title, section, body })
}

/** The table with its link to the next page. */
export function linksListFragment(view: LinksView): Html {
  const { links, next, searchedTo } = view
  const nothing = links.length === 0
  return html`<div id="links-results" class="results">
    ${
      nothing
        ? searchedTo === null && noLinks(view)
        : listTable({
            bodyId: 'links-rows',
            caption: 'Links by slug',
            columns: ['Link', 'Leads to', 'Tags', { number: 'Clicks, 30 days' }, 'Short link'],
            kind: 'links',
            rows: links.map((link) => row(link, view)),
          })
    }
    ${(!nothing || searchedTo !== null) && more(next, searchedTo, !nothing)}
  </div>`
}

function row(link: ListedLink, { short, isAdmin }: LinksView): Html {
  const { slug, url, tags, visibility, clicks } = link
  const mayRead = isAdmin || link.is_owner || link.is_recipient
  return html`<tr role="row" data-slug="${slug}">
    ${linkCell(link, short, mayRead)}
    <td role="cell" class="target"><bdi>${url}</bdi></td>
    <td role="cell" class="kind">
      <span class="badges">
        ${visibility !== 'public' && visibilityBadge(visibility)} ${roleBadge(link)}
        ${tagList(tags)}
      </span>
    </td>
    <td role="cell" class="number">
      ${clicks}<span class="narrow-only"> ${clicks === 1 ? 'click' : 'clicks'} in 30 days</span>
    </td>
    <td role="cell" class="copy">
      <span class="hidden" id="short-${slug}">${short.base}/${slug}</span>
      <button class="js-only" type="button" data-copy="short-${slug}">
        Copy <span class="hidden">the short link of ${slug}</span>
      </button>
    </td>
  </tr>`
}

/** What the visitor is to the link, where it is not the visitor's own. */
function roleBadge({ is_primary, is_owner, is_recipient }: ListedLink): Printable {
  if (is_primary) return ''
  if (is_owner) return html`<span class="badge token">co-owner</span>`
  return is_recipient && html`<span class="badge token">shared with me</span>`
}

/**
 * The way to the next page. Both states have the same id, so that htmx gives the focus back to it.
 */
function more(next: string | null, searchedTo: string | null, appends: boolean): Html {
  const append = appends && {
    'hx-get': next ?? '',
    'hx-target': '#links-rows',
    'hx-swap': 'beforeend',
    'hx-select': '#links-rows > tr',
    'hx-select-oob': '#links-more',
  }
  const link = { id: 'links-more-link', href: next ?? '', ...append }
  const searched = searchedTo === '' ? 'Searched for a while' : `Searched up to “${searchedTo}”`
  return html`<p id="links-more" class="more">
    ${searchedTo !== null && html`${searched}; there may be more.`}
    ${
      next === null
        ? html`<span id="links-more-link" class="muted" tabindex="-1">No more links.</span>`
        : html`<a${attributes(link)}>${searchedTo === null ? 'More links' : 'Search on'}</a>`
    }
  </p>`
}

function noLinks({ list, filter }: LinksView): Html {
  if (Object.values(filter).some((value) => value !== '')) {
    return html`<div class="panel empty">
      <p><strong>No link matches.</strong></p>
      <p><a href="${listPath(list)}">Show the whole list</a></p>
    </div>`
  }
  return html`<div class="panel empty">
    <p><strong>${list === 'mine' ? 'You have no link yet.' : 'There is no link yet.'}</strong></p>
    <p>
      <a href="/-/new">Create one</a>
      ${list === 'mine' && html`or look at <a href="/-/all">all links</a>`}
    </p>
  </div>`
}

/** Path of a list. */
export function listPath(list: ListName): string {
  return list === 'mine' ? '/-/' : '/-/all'
}

/** The search and filters above a list. */
function listFilter(list: ListName, { q, tag, visibility, role }: ListFilter): Html {
  const path = listPath(list)
  const plain = { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' }
  const search = { type: 'search', name: 'q', value: q, maxlength: 200, ...plain }
  const placeholder = 'Slug, title, address or tag'
  return filterForm(
    'Links',
    { path, results: 'links-results' },
    html`<label>Search <input${attributes({ ...search, placeholder })} /></label>
      <label class="half">
        Tag <input${attributes({ name: 'tag', value: tag, maxlength: 50, ...plain })} />
      </label>
      ${filterChoice('Visibility', visibility, VISIBILITIES, { name: 'visibility' })}
      ${list === 'mine' && filterChoice('I am', role, ROLES, { name: 'role' })}
      <div class="actions">
        ${submit('Search')}
        <a href="${path}">Clear</a>
      </div>`,
  )
}

/** What `/-/admin/links` shows: all links, or those whose slug begins with a text. */
export interface AllLinksView {
  readonly viewer: User
  readonly prefix: string
  readonly links: readonly Link[]
  readonly next: string | null
  readonly short: ShortLinks
}

export function allLinksPage(view: AllLinksView): Html {
  const body = html`<h1>Links of everybody</h1>
    ${adminTabs('links')} ${searchForm(view.prefix)} ${allLinksFragment(view)}`
  return linksPage(view.viewer, { title: 'Links of everybody', section: 'admin', body })
}

/** The list alone: what htmx puts into its place, or takes the next rows from. */
export function allLinksFragment(view: AllLinksView): Html {
  const { links, next, prefix } = view
  const list = html`${listTable({
    bodyId: 'all-links',
    caption: 'All links by slug',
    columns: ['Link', 'Leads to', 'Visibility', 'Owner', 'Change'],
    kind: 'links',
    rows: links.map((link) => linkRow(link, view.short)),
  })}
  ${moreLink({ rows: 'all-links', next })}`
  return html`<div id="admin-links">${links.length === 0 ? nothing(prefix) : list}</div>`
}

function searchForm(prefix: string): Html {
  const trigger = 'input changed delay:300ms target:input'
  return filterForm(
    'All links',
    { path: '/-/admin/links', results: 'admin-links', trigger },
    html`${filterText('Slug begins with', {
        ...{ type: 'search', name: 'q', id: 'prefix', value: prefix, maxlength: 64 },
        ...{ autocapitalize: 'off', spellcheck: 'false' },
      })} <button type="submit">Search</button>`,
  )
}

function nothing(prefix: string): Html {
  if (prefix === '') return emptyState('No links yet.')
  return html`<div class="panel empty">
    <p><strong>No slug begins with “${prefix}”.</strong></p>
    <p><a href="/-/admin/links">Show all links</a></p>
  </div>`
}

function linkRow(link: Link, short: ShortLinks): Html {
  const { id, slug, url, owners, visibility } = link
  const owner = owners.find(({ is_primary }) => is_primary)
  return html`<tr role="row" data-slug="${slug}">
    ${linkCell(link, short, true)}
    <td role="cell" class="target"><bdi>${url}</bdi></td>
    <td role="cell" class="kind">${visibilityBadge(visibility)}</td>
    <td role="cell" class="owner">${owner?.email}</td>
    <td role="cell">
      <span class="actions">
        <a href="/-/links/${id}/edit">Edit <span class="hidden">${slug}</span></a>
        <a href="/-/links/${id}/delete">Delete <span class="hidden">${slug}</span></a>
      </span>
    </td>
  </tr>`
}
