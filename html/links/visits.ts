import type { Suggestion, ListedLink } from '../../db/links/lists.ts'
import type { ClickKind, DayClicks } from '../../db/links/visits.ts'
import { html, type Html } from '../../kernel/html.ts'
import { errorBody } from '../layout.ts'
import { linksPage, type Viewer } from './layout.ts'

/** A visit that leads nowhere. */
export interface UnknownView {
  /** The slug as it was asked for. */
  readonly asked: string
  /** The slug that a link may be made with to answer such a visit. */
  readonly creates: string | undefined
  readonly suggestions: readonly Suggestion[]
}

/** The 404 page of the resolver: what was meant perhaps, and a way to make the link. */
export function unknownPage(viewer: Viewer, { asked, creates, suggestions }: UnknownView): Html {
  const body = html`<section class="panel error">
    <p class="error-status">404</p>
    <h1>
      ${asked === '' ? 'There is no such link' : html`There is no link “<bdi>${asked}</bdi>”`}
    </h1>
    ${
      suggestions.length > 0 &&
      html`<h2>Did you mean</h2>
        <ul class="suggestions">
          ${suggestions.map(
            ({ slug, title }) =>
              html`<li>
                <a href="/${slug}">${slug}</a>${title !== '' && html` <bdi>${title}</bdi>`}
              </li>`,
          )}
        </ul>`
    }
    ${
      creates !== undefined &&
      viewer &&
      html`<form method="get" action="/-/new">
        <input type="hidden" name="slug" value="${creates}" />
        <p><button type="submit" class="primary">Create “${creates}”</button></p>
      </form>`
    }
    ${viewer && html`<p><a href="/-/">Go to my links</a></p>`}
  </section>`
  return linksPage(viewer, { title: '404 Not Found', section: 'none', body })
}

/** Where a link leads, before it is followed (`/slug+`). */
export function previewPage(
  viewer: Viewer,
  link: { readonly id: string; readonly slug: string; readonly url: string },
  mayRead: boolean,
): Html {
  const body = html`<section class="panel preview">
    <h1>${link.slug}</h1>
    <p>leads to</p>
    <p>
      <code><bdi>${link.url}</bdi></code>
    </p>
    <p><a class="button primary" href="/${link.slug}" rel="noreferrer">Follow the link</a></p>
    ${mayRead && html`<p><a href="/-/links/${link.id}">Details</a></p>`}
  </section>`
  return linksPage(viewer, { title: `Preview of ${link.slug}`, section: 'none', body })
}

/** The page of a refused request. */
export function linksErrorPage(
  viewer: Viewer,
  error: { readonly status: number; readonly title: string; readonly detail: string },
): Html {
  const ways = viewer === undefined ? '' : html`<a href="/-/">Go to my links</a>`
  const title = `${error.status} ${error.title}`
  return linksPage(viewer, { title, section: 'none', body: errorBody(error, html`${ways}`) })
}

/** What was typed into the address bar and is no link's name. */
export interface SearchView {
  readonly name: string
  /** What followed the name, encoded, with its `/`; it is kept in the links. */
  readonly rest: string
  /** Whether a link could have this name, so that one may be made with it. */
  readonly canCreate: boolean
  readonly suggestions: readonly Suggestion[]
  /** Links in which the name occurs; null for who is not signed in. */
  readonly found: readonly ListedLink[] | null
}

/** Where a browser's search ends that leads to no link: what was meant perhaps. */
export function searchPage(viewer: Viewer, view: SearchView): Html {
  const { name, rest, canCreate, suggestions, found } = view
  const others = (found ?? []).filter(({ slug }) => suggestions.every((one) => one.slug !== slug))
  const all = `/-/all?${new URLSearchParams({ q: name }).toString()}`
  const body = html`<section class="panel stack">
    <h1>No link is named “${name}”</h1>
    ${suggestions.length > 0 && list('Did you mean', suggestions, rest)}
    ${others.length > 0 && list(`Links with “${name}”`, others, rest)}
    ${suggestions.length + others.length === 0 && html`<p>Nothing that you may see is like it.</p>`}
    ${
      viewer &&
      canCreate &&
      html`<form method="get" action="/-/new">
        <input type="hidden" name="slug" value="${name.toLowerCase()}" />
        <p><button type="submit" class="primary">Create “${name.toLowerCase()}”</button></p>
      </form>`
    }
    ${viewer && html`<p class="field"><a href="${all}">Search all links</a></p>`}
  </section>`
  return linksPage(viewer, { title: `Search for ${name}`, section: 'none', body })
}

function list(title: string, links: readonly Suggestion[], rest: string): Html {
  return html`<h2>${title}</h2>
    <ul class="suggestions">
      ${links.map(
        ({ slug, title: about }) =>
          html`<li>
            <a href="/${slug}${rest}">${slug}</a>${about !== '' && html` <bdi>${about}</bdi>`}
          </li>`,
      )}
    </ul>`
}

const HEIGHT = 60
/** From the ground up; the words are those of the legend, for many and for one. */
const KINDS: readonly (readonly [ClickKind, string, string])[] = [
  ['human', 'people', 'person'],
  ['bot', 'programs', 'program'],
  ['preview', 'previews', 'preview'],
]

/** How often a link was visited, by day and kind. */
export interface ClicksView {
  /** The days that are told, oldest first, such as `2026-01-31`. */
  readonly days: readonly string[]
  readonly clicks: readonly DayClicks[]
}

/** The visits of the last days as bars, and the same as a table for those who don't see bars. */
export function clickChart(view: ClicksView): Html {
  const rows = view.days.map((day) => dayOf(day, view.clicks))
  const total = rows.reduce((sum, row) => sum + row.total, 0)
  const peak = Math.max(1, ...rows.map((row) => row.total))
  return html`<section class="panel" aria-labelledby="clicks-title">
    <h2 id="clicks-title">Clicks in ${view.days.length} days</h2>
    <svg
      class="chart clicks"
      viewBox="0 0 ${rows.length * 10} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${summary(rows, total)}"
    >
      ${rows.map((row, at) => bar(row, at, peak))}
    </svg>
    <ul class="legend">
      ${KINDS.map(
        ([kind, many, one]) =>
          html`<li>
            <span class="swatch ${kind}"></span>${counted(sumOf(rows, kind), many, one)}
          </li>`,
      )}
    </ul>
    ${total > 0 && table(rows.filter((row) => row.total > 0))}
  </section>`
}

interface Day {
  readonly day: string
  readonly total: number
  readonly by: Readonly<Record<ClickKind, number>>
}

function dayOf(day: string, clicks: readonly DayClicks[]): Day {
  const by = { human: 0, bot: 0, preview: 0 }
  for (const row of clicks) if (row.day === day) by[row.kind] += row.clicks
  return { day, by, total: by.human + by.bot + by.preview }
}

function sumOf(rows: readonly Day[], kind: ClickKind): number {
  return rows.reduce((sum, { by }) => sum + by[kind], 0)
}

function counted(count: number, many: string, one: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/** The kinds of one day above each other; a day without a visit keeps a line, so that a scale shows. */
function bar({ day, total, by }: Day, at: number, peak: number): Html {
  const x = at * 10 + 1
  let top = HEIGHT
  const parts = KINDS.filter(([kind]) => by[kind] > 0).map(([kind]) => {
    const height = Math.max(1, (by[kind] / peak) * (HEIGHT - KINDS.length))
    top -= height
    return html`<rect
      class="${kind}"
      x="${x}"
      y="${top.toFixed(1)}"
      width="8"
      height="${height.toFixed(1)}"
    ></rect>`
  })
  const none = html`<rect class="none" x="${x}" y="${HEIGHT - 1}" width="8" height="1"></rect>`
  return html`<g><title>${day}: ${total}</title>${parts.length === 0 ? none : parts}</g>`
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
