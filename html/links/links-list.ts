import type { ListedLink } from '../../db/links/rows.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { ListFilter } from '../../services/links/list-filter.ts'
import { listTable } from '../table.ts'
import { linksPage, type Viewer } from './layout.ts'
import { filterForm, type ListName } from './links-filter.ts'
import { shortName, tagList, visibilityBadge, type ShortLinks } from './link-parts.ts'

/** A list of links. */
export interface LinksView {
  readonly list: ListName
  readonly filter: ListFilter
  readonly links: readonly ListedLink[]
  /** Address of the next page. */
  readonly next: string | null
  /** A search that is not through yet looked at all slugs up to this one. */
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
    ${filterForm(view.list, view.filter)} ${linksListFragment(view)}`
  return linksPage(viewer, { title, section, body })
}

/** The table with its link to the next page: what a request of htmx is answered with. */
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
  const { id, slug, url, title, tags, visibility, clicks } = link
  const mayRead = isAdmin || link.is_owner || link.is_recipient
  return html`<tr role="row" data-slug="${slug}">
    <td role="cell" class="type">
      <a href="${mayRead ? `/-/links/${id}` : `/${slug}+`}">${shortName(short, slug)}</a>
      ${title !== '' && html`<bdi class="title">${title}</bdi>`}
    </td>
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

/** Both states bear the same id: htmx gives the focus back to it, also when the last page came. */
function more(next: string | null, searchedTo: string | null, appends: boolean): Html {
  const append = html`hx-get="${next}" hx-target="#links-rows" hx-swap="beforeend"
  hx-select="#links-rows > tr" hx-select-oob="#links-more"`
  const looked = searchedTo === '' ? 'Searched for a while' : `Searched up to “${searchedTo}”`
  return html`<p id="links-more" class="more">
    ${searchedTo !== null && html`${looked}; the rest was not looked at yet.`}
    ${
      next === null
        ? html`<span id="links-more-link" class="muted" tabindex="-1">No more links.</span>`
        : html`<a id="links-more-link" href="${next}" ${appends && append}
            >${searchedTo === null ? 'More links' : 'Search on'}</a
          >`
    }
  </p>`
}

function noLinks({ list, filter }: LinksView): Html {
  const { q, tag, visibility, role } = filter
  const filtered = [q, tag, visibility, role].some((value) => value !== '')
  return html`<div class="panel empty">
    ${
      filtered
        ? html`<p><strong>No link matches.</strong></p>
            <p><a href="${list === 'mine' ? '/-/' : '/-/all'}">Show the whole list</a></p>`
        : html`<p>
              <strong
                >${list === 'mine' ? 'You have no link yet.' : 'There is no link yet.'}</strong
              >
            </p>
            <p>
              <a href="/-/new">Make one</a>
              ${list === 'mine' && html`or look at <a href="/-/all">all links</a>`}
            </p>`
    }
  </div>`
}
