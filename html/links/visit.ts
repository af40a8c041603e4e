import type { Suggestion } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { errorBody } from '../error-body.ts'
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
