import type { Visibility, Link } from '../../db/links/links.ts'
import type { ListedLink } from '../../db/links/lists.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { ListFilter } from '../../services/links/lists.ts'
import { listTable } from '../table.ts'
import { linksPage, type Viewer } from './layout.ts'
import { listFilter } from '../list-filter.ts'
import { copyBox, fact } from '../parts.ts'
import { timeTag } from '../text.ts'
import { clickChart, type ClicksView } from './visits.ts'
import { linkMembers, type MembersView } from './members.ts'

/** How short links are written: for people with the keyword, and as addresses. */
export interface ShortLinks {
  readonly keyword: string
  /** Public address of the service, without a slash at its end. */
  readonly base: string
}

/** A short link as people say it: `go/docs`. */
export function shortName({ keyword }: ShortLinks, slug: string): Html {
  return html`<span class="keyword">${keyword}/</span>${slug}`
}

const ABOUT: Readonly<Record<Visibility, string>> = {
  public: 'Everybody who is signed in finds it',
  private: 'Whoever knows it may follow it; only owners, recipients and admins find it',
  secure: 'Only owners, recipients and admins may follow it',
}

export function visibilityBadge(visibility: Visibility): Html {
  const kind = { public: 'verified', private: '', secure: 'open' }[visibility]
  return html`<span class="badge ${kind}" title="${ABOUT[visibility]}">${visibility}</span>`
}

/** Tags, each leading to the links that have it. */
export function tagList(tags: readonly string[]): readonly Html[] {
  return tags.map((tag) => html`<a class="tag" href="/-/tags/${tag}">#${tag}</a>`)
}

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

/** The lists that there are. */
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

/** Path of a list. */
export function listPath(list: ListName): string {
  return list === 'mine' ? '/-/' : '/-/all'
}

/**
 * The search and filters above a list: an ordinary GET form; htmx replaces `#links-results` by the
 * fragment that the same URL answers to it, and puts that URL into the address bar.
 */
export function filterForm(list: ListName, { q, tag, visibility, role }: ListFilter): Html {
  const path = listPath(list)
  return listFilter({
    label: 'Links',
    path: path,
    results: 'links-results',
    fields: html`<label>
        Search
        <input
          type="search"
          name="q"
          value="${q}"
          maxlength="200"
          placeholder="Slug, title, address or tag"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
        />
      </label>
      <label class="half">
        Tag
        <input
          name="tag"
          value="${tag}"
          maxlength="50"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
        />
      </label>
      ${choice('visibility', 'Visibility', visibility, VISIBILITIES)}
      ${list === 'mine' && choice('role', 'I am', role, ROLES)}
      <div class="actions">
        <button type="submit" class="primary">Search</button>
        <a href="${path}">Clear</a>
      </div>`,
  })
}

function choice(
  name: string,
  label: string,
  chosen: string,
  options: readonly (readonly [value: string, text: string])[],
): Html {
  return html`<label class="half">
    ${label}
    <select name="${name}">
      ${options.map(
        ([value, text]) =>
          html`<option value="${value}" ${value === chosen && html`selected`}>${text}</option>`,
      )}
    </select>
  </label>`
}

/** A link with all that belongs to it. */
export interface LinkView {
  readonly link: Link
  readonly short: ShortLinks
  readonly clicks: ClicksView
  readonly members: MembersView
}

/** `/-/links/{id}`. */
export function linkPage(viewer: Viewer, { link, short, clicks, members }: LinkView): Html {
  const { id, slug, url, title, description, tags, visibility, append_path } = link
  const path = append_path ? 'is appended' : 'only where the address has a place for it'
  const body = html`<p class="crumb"><a href="/-/">My links</a></p>
    <div class="title-line">
      <h1>${shortName(short, slug)} ${visibilityBadge(visibility)}</h1>
      ${members.mayChange && actions(id)}
    </div>
    ${title !== '' && html`<p class="lead"><bdi>${title}</bdi></p>`}
    <section class="panel" aria-labelledby="link-title">
      <h2 id="link-title" class="hidden">The link</h2>
      ${copyBox('short-link', 'short link', `${short.base}/${slug}`)}
      <p class="target">
        Leads to <a href="/${slug}" rel="noreferrer"><bdi>${url}</bdi></a>
      </p>
      <dl class="facts">
        ${fact('Further path', path)}
        ${fact('Tags', tags.length === 0 ? null : html`<span class="badges">${tagList(tags)}</span>`)}
        ${fact('Made', timeTag(link.created_at))} ${fact('Changed', timeTag(link.updated_at))}
      </dl>
      ${description !== '' && html`<p class="description"><bdi>${description}</bdi></p>`}
    </section>
    ${clickChart(clicks)} ${linkMembers(members)}`
  return linksPage(viewer, { title: slug, section: 'links', body })
}

function actions(id: string): Html {
  return html`<p class="actions">
    <a href="/-/links/${id}/edit">Edit</a>
    <a href="/-/links/${id}/delete">Delete…</a>
  </p>`
}

/** `/-/links/{id}/delete`: asks once more; nothing is done by the way to it. */
export function deletePage(viewer: Viewer, { id, slug, url }: Link, short: ShortLinks): Html {
  const action = `/-/links/${id}/delete`
  const body = html`<p class="crumb"><a href="/-/links/${id}">${slug}</a></p>
    <section class="panel stack">
      <h1>Delete ${shortName(short, slug)}?</h1>
      <p>
        It leads to <code><bdi>${url}</bdi></code
        >.
      </p>
      <p>
        Who follows it will find nothing. Its history and its clicks go with it, and its name is
        free for anybody. This can’t be undone.
      </p>
      <form method="post" action="${action}" hx-post="${action}" hx-swap="none">
        <p class="actions">
          <button type="submit" class="danger" id="delete-link">Delete the link</button>
          <a href="/-/links/${id}">Keep it</a>
        </p>
      </form>
    </section>`
  return linksPage(viewer, { title: `Delete ${slug}`, section: 'links', body })
}
