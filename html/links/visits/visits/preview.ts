import type { Link } from '../../../../db/links/names/links.ts'
import { html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import { facts } from '../../../parts.ts'
import type { Example } from '../../../../services/links/names/links/places.ts'
import { previewExample } from '../../names/links/places.ts'
import {
  primaryOwner,
  shortAddress,
  shortName,
  tagList,
  visibilityBadge,
  type ShortLinks,
} from '../../names/links/links.ts'

/** What the viewer of a preview may know of its link, beside where it leads. */
export type LinkDetails =
  | { kind: 'hidden' }
  | { kind: 'title'; title: string }
  | { kind: 'all'; link: Link; mayOpen: boolean }

/** What the preview of a link shows. */
interface PreviewView {
  link: Pick<Link, 'id' | 'slug' | 'url'>
  /** Whether the site that the link leads to is told the visitor's e-mail address. */
  tellsUser: boolean
  details: LinkDetails
  /** Of a link that takes a further path. */
  example: Example | undefined
  short: ShortLinks
}

/** Where a link leads, before it is followed (`/slug+`), and what it is. */
export function previewPage(view: PreviewView): Page {
  const { link: target, tellsUser, details, example, short } = view
  const { id, slug, url } = target
  const link = details.kind === 'all' ? details.link : undefined
  const title = details.kind === 'title' ? details.title : (link?.title ?? '')
  const description = link?.description ?? ''
  const body = html`<section class="panel">
    <h1>${shortName(short, slug)} ${link && visibilityBadge(link.visibility)}</h1>
    ${title !== '' && html`<p class="lead"><bdi>${title}</bdi></p>`}
    <p>leads to</p>
    <p>
      <code><bdi>${url}</bdi></code>
    </p>
    ${tellsUser && html`<p>That site is told your e-mail address.</p>`}
    <p><a class="button primary" href="/${slug}" rel="noreferrer">Follow the link</a></p>
    ${example && previewExample(short, slug, example)}
    ${description !== '' && html`<p class="description"><bdi>${description}</bdi></p>`}
    ${
      link &&
      html`${shortAddress(short, slug)}
      ${facts({
        Owner: html`<bdi>${primaryOwner(link.owners)}</bdi>`,
        Tags: link.tags.length > 0 && html`<span class="badges">${tagList(link.tags)}</span>`,
      })}`
    }
    ${
      details.kind === 'all' &&
      details.mayOpen &&
      html`<p class="actions"><a href="/-/links/${id}">Details</a></p>`
    }
  </section>`
  return { title: `Preview of ${slug}`, section: 'none', body }
}
