import type { ListedLink } from '../../db/links/lists.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import type { LinksPage, LinkSearch } from '../../services/links/lists.ts'
import { anyOf, plainChoice, filterForm, plainField, submit } from '../form.ts'
import { emptyList, listTable, moreLink } from '../parts.ts'
import { linksView } from './layout.ts'
import { linkRow, tagList, visibilityBadge, type ShortLinks } from './links.ts'

const ROLES = [
  ['', 'Any'],
  ['owner', 'Owner'],
  ['co-owner', 'Co-owner'],
  ['recipient', 'Shared with me'],
] as const

const VISIBILITIES = anyOf('public', 'private', 'secure')

const VERBATIM = { autocapitalize: 'off', spellcheck: 'false' }
const SEARCH = { type: 'search', name: 'q', ...VERBATIM }

export const LIST_PATHS = { mine: '/-/', all: '/-/all' } as const

/** A list of links: what was searched for, and a page of what was found. */
export interface LinksView extends Omit<LinksPage, 'next'>, LinkSearch {
  /** Address of the next page. */
  next: string | null
  short: ShortLinks
}

/** `/-/` and `/-/all`: links by slug. */
export function linksListView(view: LinksView): View {
  const { among } = view
  const title = among === 'all' ? 'All links' : 'My links'
  const section = among === 'all' ? 'all' : 'links'
  const head = html`<div class="title-line">
      <h1>${title}</h1>
      <a href="/-/new">New link</a>
    </div>
    <p class="muted">${aboutList(view)}</p>
    ${listFilter(view)}`
  return linksView({ title, section, head }, listContent(view))
}

function aboutList({ among, visitor }: LinksView): string {
  if (among === 'mine') return 'What you own, co-own, or were given to read.'
  return visitor.role === 'admin' ? 'Every link there is.' : 'Public links and those you may see.'
}

/** The table with its link to the next page. */
function listContent(view: LinksView): Html {
  const { links, next, searchedTo } = view
  const isFinished = searchedTo === null
  const part = searchedTo === '' ? 'for a while' : `up to “${searchedTo}”`
  const more = {
    next,
    note: !isFinished && `Searched ${part}; there may be more.`,
    label: isFinished ? 'More links' : 'Search on',
    end: 'No more links.',
    appends: links.length > 0,
  }
  if (links.length === 0) return results(isFinished ? noLinks(view) : moreLink('links', more))
  const table = listTable({
    bodyId: 'links',
    caption: 'Links by slug',
    columns: ['Link', 'Leads to', 'Tags', { number: 'Clicks, 30 days' }, 'Short link'],
    kind: 'links',
    rows: links.map((link) => listedRow(link, view)),
    more,
  })
  return results(table)
}

function results(content: Html): Html {
  return html`<div id="links-results" class="results">${content}</div>`
}

function listedRow(link: ListedLink, { short, visitor }: LinksView): Html {
  const { slug, tags, visibility, clicks } = link
  const mayRead = visitor.role === 'admin' || link.is_owner || link.is_recipient
  const kind = visibility !== 'public' && visibilityBadge(visibility)
  const badges = html`<span class="badges"> ${kind} ${roleBadge(link)} ${tagList(tags)} </span>`
  const noun = clicks === 1 ? 'click' : 'clicks'
  const number = html`${clicks}<span class="narrow-only"> ${noun} in 30 days</span>`
  const copy = html`<span class="hidden" id="short-${slug}">${short.base}/${slug}</span>
    <button class="js-only" type="button" data-copy="short-${slug}">
      Copy <span class="hidden">the short link of ${slug}</span>
    </button>`
  return linkRow(link, short, mayRead, { kind: badges, number, copy })
}

/** What the visitor is to the link, where it is not the visitor's own. */
function roleBadge({ is_primary, is_owner, is_recipient }: ListedLink): Printable {
  if (is_primary) return ''
  if (is_owner) return html`<span class="badge token">co-owner</span>`
  return is_recipient && html`<span class="badge token">shared with me</span>`
}

function noLinks({ among, filter }: LinksView): Html {
  if (Object.values(filter).some((value) => value !== '')) {
    const way = html`<a href="${LIST_PATHS[among]}">Show the whole list</a>`
    return emptyList('No link matches.', way)
  }
  const create = html`<a href="/-/new">Create one</a>`
  if (among === 'all') return emptyList('There is no link yet.', create)
  const way = html`${create} or look at <a href="/-/all">all links</a>`
  return emptyList('You have no link yet.', way)
}

/** The search and filters above a list. */
function listFilter({ among, filter }: LinksView): Html {
  const { q, tag, visibility, role } = filter
  const path = LIST_PATHS[among]
  const placeholder = 'Slug, title, address or tag'
  const search = { ...SEARCH, value: q, maxlength: 200, placeholder }
  const byTag = { labelClass: 'half', name: 'tag', value: tag, maxlength: 50, ...VERBATIM }
  return filterForm(
    'Links',
    { path, results: 'links-results' },
    html`${plainField('Search', search)} ${plainField('Tag', byTag)}
      ${plainChoice('Visibility', visibility, VISIBILITIES, { name: 'visibility' })}
      ${among === 'mine' && plainChoice('I am', role, ROLES, { name: 'role' })}
      <div class="actions">
        ${submit('Search')}
        <a href="${path}">Clear</a>
      </div>`,
  )
}
