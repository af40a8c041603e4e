import type { Link } from '../../db/links/links.ts'
import type { User } from '../../db/links/users.ts'
import { html, type Html } from '../../kernel/html.ts'
import { filterForm, filterText } from '../form.ts'
import { listTable, emptyState, moreLink } from '../parts.ts'
import { adminTabs, linksPage } from './layout.ts'
import { shortName, visibilityBadge, type ShortLinks } from './links.ts'

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

function linkRow({ id, slug, title, url, owners, visibility }: Link, short: ShortLinks): Html {
  const owner = owners.find(({ is_primary }) => is_primary)
  return html`<tr role="row" data-slug="${slug}">
    <td role="cell" class="type">
      <a href="/-/links/${id}">${shortName(short, slug)}</a>
      ${title !== '' && html`<bdi class="title">${title}</bdi>`}
    </td>
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
