import type { ListedLink } from '../../db/links/names/lists.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import type { End } from '../../services/links/names/links/lifecycle.ts'
import type { LinksPage, LinkSearch } from '../../services/links/names/lists/lists.ts'
import { anyOf, field, filterForm, select, submit, VERBATIM } from '../form.ts'
import { contentView } from '../layout.ts'
import { sparkline } from '../chart.ts'
import {
  copyButton,
  countLine,
  countText,
  countUpTo,
  emptyState,
  listTable,
  section,
  timeTag,
} from '../parts.ts'
import { brokenBadge } from './visits/health/section.ts'
import {
  endBadge,
  linkRow,
  tagList,
  visibilityBadge,
  type ShortLinks,
} from './names/links/links.ts'
import { firstLinkForm, firstLinkStep } from './names/links/first.ts'

const ROLES = [
  ['', 'Any'],
  ['owner', 'Owner'],
  ['co-owner', 'Co-owner'],
  ['recipient', 'Shared with me'],
] as const

const ORDERS = [
  ['clicks', 'Most clicks'],
  ['last_click', 'Last visit'],
  ['slug', 'Name'],
  ['created', 'Newest'],
  ['changed', 'Last changed'],
] as const

const WHILE_TYPING = 'change target:select, input changed delay:200ms target:[type=search]'

const STATES = [
  ['', 'Any'],
  ['active', 'Active'],
  ['expired', 'Expired'],
  ['used_up', 'Used up'],
  ['archived', 'Archived'],
] as const

const VISIBILITIES = anyOf('public', 'private', 'secure')

export const LIST_PATHS = { mine: '/-/', all: '/-/all' } as const

/** A list of links: what was searched for, and a page of what was found. */
interface LinksView extends Omit<LinksPage, 'next'>, LinkSearch {
  path: string
  /** The tag whose page this is; there it is not part of the filter. */
  pageOf?: string
  /** How many links there are; null where counting would take a search. */
  count: number | null
  /** Address of the next page. */
  next: string | null
  /** Why the visits of links have ended, by slug. */
  ends: ReadonlyMap<string, End | undefined>
  /** The slugs of broken links. */
  broken: ReadonlySet<string>
  /** The visits of the last days, by id; of links whose statistics the visitor may see. */
  trends: ReadonlyMap<string, readonly number[]>
  /** Owners whose links the operator of this machine is shown. */
  others?: readonly string[]
  /** How many days without a visit make a link unused. */
  unusedDays: number
  short: ShortLinks
}

/** `/-/` and `/-/all`: links in the order that is chosen. */
export function linksListView(view: LinksView): View {
  const { among, short } = view
  const usage = usagePath(view)
  const title = among === 'all' ? 'All links' : 'My links'
  const section = among === 'all' ? 'all' : 'links'
  const above = html`<div class="title-line">
      <h1>${title}</h1>
      <p class="actions">
        ${
          among === 'mine' &&
          html`<a href="/-/own">Change several</a> <a href="/-/health">Health</a>
            <a href="/-/deleted">Deleted links</a>`
        }
        ${
          usage !== undefined &&
          html`<a href="${usage}">Usage</a>
            <a href="${usage}#unused-title">Unused for ${view.unusedDays} days</a>`
        }
        ${view.visitor.role === 'admin' && html`<a href="/-/admin/import">Import</a>`}
        <a href="/-/new">New link</a>
      </p>
    </div>
    <p class="muted">${aboutList(view)}</p>
    ${isFirst(view) && firstLinkForm(short)} ${listFilter(view)}`
  return contentView({ title, section, script: 'links.js', above }, listContent(view))
}

/** `/-/tags/{tag}`: the links with a tag that the visitor may see. */
export function tagView(tag: string, view: LinksView): View {
  const above = html`<p class="crumb"><a href="/-/tags">Tags</a></p>
    <h1>Links tagged “${tag}”</h1>
    ${listFilter(view)}`
  return contentView(
    { title: `Tag ${tag}`, section: 'tags', script: 'links.js', above },
    listContent(view),
  )
}

/**
 * The page that shows how much the links of a list are used; undefined for visitors who may not see
 * it.
 */
function usagePath({ among, visitor }: LinksView): string | undefined {
  if (among === 'mine') return '/-/usage'
  return visitor.role === 'admin' ? '/-/admin/usage' : undefined
}

function aboutList({ among, visitor }: LinksView): string {
  if (among === 'mine') return 'What you own, co-own, or were given to read.'
  return visitor.role === 'admin' ? 'Every link there is.' : 'Public links and those you may see.'
}

/** The table with its count and the link to its next page. */
function listContent(view: LinksView): Html {
  const { links, next, filter, count } = view
  if (links.length === 0) return results(view, noLinks(view))
  const table = listTable({
    bodyId: 'links',
    caption: `Links by ${ORDERS.find(([value]) => value === filter.sort)?.[1].toLowerCase()}`,
    columns: [
      'Link',
      'Leads to',
      'Tags',
      'Owner',
      '30 days',
      { number: 'Clicks' },
      timeHead(view),
      'Copy',
    ],
    kind: 'dense links',
    rows: links.map((link) => listedRow(link, view)),
    more: { next, label: 'More links', end: 'No more links.', appends: true },
  })
  return results(view, html`${count !== null && countLine(countUpTo(count, 'link'))} ${table}`)
}

function results({ filter }: LinksView, content: Html): Html {
  return html`<div id="links-results" data-q="${filter.q}">${content}</div>`
}

function timeHead({ filter }: LinksView): string {
  if (filter.sort === 'created') return 'Created'
  return filter.sort === 'changed' ? 'Last changed' : 'Last visit'
}

/** The time that the list is sorted by, else that of the last visit. */
function timeCell({ created_at, updated_at, clicked_at }: ListedLink, view: LinksView): Printable {
  const { sort } = view.filter
  if (sort === 'created') return timeTag(created_at)
  if (sort === 'changed') return timeTag(updated_at)
  return clicked_at === null ? 'never' : timeTag(clicked_at)
}

function trendCell({ id }: ListedLink, { trends }: LinksView): Printable {
  const trend = trends.get(id)
  if (trend === undefined) return ''
  const visits = trend.reduce((sum, day) => sum + day, 0)
  return sparkline(`${countText(visits, 'visit')} in ${trend.length} days`, trend)
}

function listedRow(link: ListedLink, view: LinksView): Html {
  const { slug, tags, visibility, is_primary, owner_name, clicks } = link
  const { short, visitor } = view
  const mayRead = visitor.role === 'admin' || link.is_owner || link.is_recipient
  const badge = visibility !== 'public' && visibilityBadge(visibility)
  const kind = html`<span class="badges"
    >${badge} ${endBadge(view.ends.get(slug))} ${brokenBadge(view.broken.has(slug))}
    ${roleBadge(link)} ${tagList(tags)}</span
  >`
  const address = html`<span class="hidden" id="short-${slug}">${short.base}/${slug}</span>`
  const button = copyButton(`short-${slug}`, `the short link of ${slug}`)
  return linkRow(link, short, mayRead, {
    kind,
    owner: is_primary ? html`<span class="muted">you</span>` : html`<bdi>${owner_name}</bdi>`,
    trend: trendCell(link, view),
    number: html`${clicks}<span class="narrow-only"> ${clicks === 1 ? 'click' : 'clicks'}</span>`,
    when: timeCell(link, view),
    verify: short.base !== '' && html`${address} ${button}`,
  })
}

/** The visitor's role on a link of somebody else. */
function roleBadge({ is_primary, is_owner, is_recipient }: ListedLink): Printable {
  if (is_primary) return ''
  if (is_owner) return html`<span class="badge token">co-owner</span>`
  return is_recipient && html`<span class="badge token">shared with me</span>`
}

/** Whether the visitor has no link, and has searched for none. */
function isFirst(view: LinksView): boolean {
  const { among, links, next } = view
  return among === 'mine' && links.length === 0 && next === null && !isSearch(view)
}

/** Whether only some links of the list are asked for. */
function isSearch({ filter, pageOf }: LinksView): boolean {
  const { sort: _sort, tag, ...conditions } = filter
  const wanted = Object.values({ ...conditions, tag: pageOf === undefined ? tag : '' })
  return wanted.some((value) => value !== '')
}

function noLinks(view: LinksView): Html {
  const { among, path, short } = view
  if (isSearch(view)) {
    return emptyState('No link matches.', html`<a href="${path}">Show the whole list</a>`)
  }
  const create = html`<a href="/-/new">Create one</a>`
  if (among === 'all') return emptyState('There is no link yet.', create)
  return html`${linksOfOthers(view)} ${firstLinkStep(short)}`
}

/** Who works on this machine without signing in finds the links of those who sign in. */
function linksOfOthers({ others = [], visitor }: LinksView): Html | false {
  const items = others.map((email) => {
    const href = `/-/all?q=${encodeURIComponent(`owner:${email}`)}`
    return html`<li>
      <a class="touch" href="${href}">See the links of <bdi>${email}</bdi></a>
    </li>`
  })
  const content = html`<p>
      You are not signed in: on this machine you are ${visitor.email}, who has no link.
    </p>
    <ul>
      ${items}
    </ul>`
  return (
    items.length > 0 &&
    section('others-title', 'Links of other people', content, { class: 'panel' })
  )
}

/** The search and filters above a list. */
function listFilter({ among, filter, path, pageOf }: LinksView): Html {
  const form = { id: 'filter', typed: filter }
  const placeholder = 'Name, title, #tag, owner:ada'
  const search = { ...VERBATIM, type: 'search', maxlength: 200, placeholder }
  // The search understands `#tag`; the field is for addresses that name one.
  const hasTag = pageOf === undefined && filter.tag !== ''
  const byTag = { ...VERBATIM, maxlength: 50, width: 'half' } as const
  return filterForm(
    'Links',
    { path, results: 'links-results', trigger: WHILE_TYPING, replaces: true },
    html`${field(form, 'q', 'Search', search)} ${hasTag && field(form, 'tag', 'Tag', byTag)}
      ${select(form, 'visibility', 'Visibility', VISIBILITIES, 'half')}
      ${pageOf === undefined && select(form, 'state', 'State', STATES, 'half')}
      ${among === 'mine' && select(form, 'role', 'I am', ROLES, 'half')}
      ${pageOf === undefined && select(form, 'sort', 'Sort by', ORDERS, 'half')}
      <div class="actions">
        ${submit('Search')}
        <a href="${path}">Clear</a>
      </div>`,
  )
}
