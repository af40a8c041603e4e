import type { Link } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { copyBox } from '../copy-box.ts'
import { fact } from '../fact.ts'
import { timeTag } from '../time.ts'
import { linksPage, type Viewer } from './layout.ts'
import { clickChart, type ClicksView } from './link-chart.ts'
import { linkMembers, type MembersView } from './link-members.ts'
import { shortName, tagList, visibilityBadge, type ShortLinks } from './link-parts.ts'

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
