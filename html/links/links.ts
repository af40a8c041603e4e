import type { Visibility, Link } from '../../db/links/links.ts'
import { html, type Html } from '../../kernel/html.ts'
import { postForm, submit } from '../form.ts'
import { linksPage, type Viewer } from './layout.ts'
import { copyBox, fact, timeTag } from '../parts.ts'
import { clickChart, type ClicksView } from './clicks.ts'
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
  private: 'Everybody who knows it may follow it; only owners, recipients and admins find it',
  secure: 'Only owners, recipients and admins may follow it',
}

export function visibilityBadge(visibility: Visibility): Html {
  const kind = { public: 'verified', private: '', secure: 'open' }[visibility]
  return html`<span class="badge ${kind}" title="${ABOUT[visibility]}">${visibility}</span>`
}

/** The first cell of a row about a link. Its name leads to its page, or to its preview. */
export function linkCell(
  { id, slug, title }: Pick<Link, 'id' | 'slug' | 'title'>,
  short: ShortLinks,
  mayRead: boolean,
): Html {
  return html`<td role="cell" class="type">
    <a href="${mayRead ? `/-/links/${id}` : `/${slug}+`}">${shortName(short, slug)}</a>
    ${title !== '' && html`<bdi class="title">${title}</bdi>`}
  </td>`
}

/** Tags, each leading to the links that have it. */
export function tagList(tags: readonly string[]): readonly Html[] {
  return tags.map((tag) => html`<a class="tag" href="/-/tags/${tag}">#${tag}</a>`)
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
        ${fact('Created', timeTag(link.created_at))} ${fact('Changed', timeTag(link.updated_at))}
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

/** `/-/links/{id}/delete`: asks before anything is deleted. */
export function deletePage(viewer: Viewer, { id, slug, url }: Link, short: ShortLinks): Html {
  const body = html`<p class="crumb"><a href="/-/links/${id}">${slug}</a></p>
    <section class="panel stack">
      <h1>Delete ${shortName(short, slug)}?</h1>
      <p>
        It leads to <code><bdi>${url}</bdi></code
        >.
      </p>
      <p>
        Visitors will get an error. Its history and its clicks are deleted, too, and anybody may
        take its name. This can’t be undone.
      </p>
      ${postForm(
        { action: `/-/links/${id}/delete` },
        html`<p class="actions">
          ${submit('Delete the link', { class: 'danger', id: 'delete-link' })}
          <a href="/-/links/${id}">Keep it</a>
        </p>`,
      )}
    </section>`
  return linksPage(viewer, { title: `Delete ${slug}`, section: 'links', body })
}
