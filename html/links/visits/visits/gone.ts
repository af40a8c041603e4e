import type { LinkAccess } from '../../../../db/links/names/links.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import type { End } from '../../../../services/links/names/links/lifecycle.ts'
import { endText, primaryOwner, shortName, type ShortLinks } from '../../names/links/links.ts'

/** What people learn who may read a link whose visits have ended. */
export interface GoneDetails {
  link: LinkAccess
  end: End | undefined
  mayChange: boolean
}

/** The 410 page of a link whose visits have ended. */
export function gonePage(slug: string, details: GoneDetails | undefined, short: ShortLinks): Page {
  const body = html`<section class="panel error">
    <p class="muted"><code>410</code></p>
    <h1>The link ${shortName(short, slug)} has ended</h1>
    ${
      details === undefined
        ? html`<p>It leads nowhere any more. Ask the person who gave it to you.</p>`
        : detailsOf(details)
    }
  </section>`
  return { title: '410 Gone', section: 'none', body }
}

function detailsOf({ link, end, mayChange }: GoneDetails): Html {
  const { id, owners } = link
  const way = mayChange
    ? html`<a class="button primary" href="/-/links/${id}/edit">Renew it</a>`
    : html`Ask its owner to renew it.`
  return html`<p>${endText(link, end)} Its owner is <bdi>${primaryOwner(owners)}</bdi>.</p>
    <p class="actions">${way} <a href="/-/links/${id}">Details</a></p>`
}
