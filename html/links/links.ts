import type { Visibility, Link } from '../../db/links/links.ts'
import { html, type Html } from '../../kernel/html.ts'
import { postForm, submit } from '../form.ts'
import { linksPage, type Viewer } from './layout.ts'
import { copyBox, fact, timeTag } from '../parts.ts'
import { linkMembers, type MembersView } from './members.ts'
import type { ClickKind, DayClicks } from '../../db/links/visits.ts'
import { barChart } from '../chart.ts'

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

const HEIGHT = 60

/** From the ground up; with the words of the legend, for many and for one. */
const KINDS: readonly (readonly [ClickKind, string, string])[] = [
  ['human', 'people', 'person'],
  ['bot', 'programs', 'program'],
  ['preview', 'previews', 'preview'],
]

/** How often a link was visited, by day and kind. */
interface ClicksView {
  /** The days to show, oldest first, such as `2026-01-31`. */
  readonly days: readonly string[]
  readonly clicks: readonly DayClicks[]
}

interface Day {
  readonly day: string
  readonly total: number
  readonly by: Readonly<Record<ClickKind, number>>
}

/** The visits of the last days as bars, and as a table for people who don't see bars. */
function clickChart(view: ClicksView): Html {
  const rows = view.days.map((day) => dayOf(day, view.clicks))
  const total = rows.reduce((sum, row) => sum + row.total, 0)
  const bars = rows.map(({ day, by }) => ({
    label: day,
    parts: KINDS.map(([kind]) => ({ kind, value: by[kind] })),
  }))
  return html`<section class="panel" aria-labelledby="clicks-title">
    <h2 id="clicks-title">Clicks in ${view.days.length} days</h2>
    ${barChart(summary(rows, total), bars, { height: HEIGHT, kind: 'clicks' })}
    <ul class="legend">
      ${KINDS.map(([kind, many, one]) => {
        const count = rows.reduce((sum, { by }) => sum + by[kind], 0)
        return html`<li>
          <span class="swatch ${kind}"></span>${count} ${count === 1 ? one : many}
        </li>`
      })}
    </ul>
    ${total > 0 && table(rows.filter((row) => row.total > 0))}
  </section>`
}

function dayOf(day: string, clicks: readonly DayClicks[]): Day {
  const by = { human: 0, bot: 0, preview: 0 }
  for (const row of clicks) if (row.day === day) by[row.kind] += row.clicks
  return { day, by, total: by.human + by.bot + by.preview }
}

function summary(rows: readonly Day[], total: number): string {
  if (total === 0) return `No clicks in ${rows.length} days`
  const best = rows.reduce((most, row) => (row.total > most.total ? row : most))
  return `Clicks by day: ${total} in all, at most ${best.total} on ${best.day}`
}

function table(rows: readonly Day[]): Html {
  return html`<details>
    <summary>Clicks by day as a table</summary>
    <table>
      <caption class="hidden">
        Clicks by day (UTC)
      </caption>
      <thead>
        <tr>
          <th scope="col">Day (UTC)</th>
          ${KINDS.map(([, label]) => html`<th scope="col">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ day, by }) =>
            html`<tr>
              <th scope="row">${day}</th>
              ${KINDS.map(([kind]) => html`<td class="number">${by[kind]}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </details>`
}
