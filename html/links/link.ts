import type { Health } from '../../db/links/visits/health.ts'
import type { LinkAccess } from '../../db/links/names/links.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import type { End } from '../../services/links/names/links/lifecycle.ts'
import { disclosed, facts, saved, timeTag } from '../parts.ts'
import { brokenBadge, healthSection } from './visits/health/section.ts'
import { handOverPath, linkMembers, type MembersView } from './names/members.ts'
import { statsPanel, type LinkStats } from './visits/stats/stats.ts'
import {
  endBadge,
  endText,
  shortAddress,
  shortName,
  tagList,
  visibilityBadge,
  type ShortLinks,
} from './names/links/links.ts'

/** What is known of a link beside its fields and members. */
interface LinkState {
  /** For those who may change it. */
  stats: LinkStats | undefined
  end: End | undefined
  /** Undefined while checks are off. */
  health: Health | undefined
  /** Whether the link was created just now. */
  isNew: boolean
}

/** `/-/links/{id}`. */
export function linkPage(
  members: MembersView,
  { stats, end, health, isNew }: LinkState,
  short: ShortLinks,
): Page {
  const { link, mayChange, mayHandOver } = members
  const { id, slug, url, title, description, tags, visibility, append_path } = link
  const { expires_at, max_visits } = link
  const { shown } = short
  const path = append_path ? 'is appended' : 'only where the address has a place for it'
  const body = html`<p class="crumb"><a href="/-/">My links</a></p>
    <div class="title-line">
      <h1>
        ${shortName(short, slug)} ${visibilityBadge(visibility)} ${endBadge(end)}
        ${brokenBadge(health?.state === 'broken')}
      </h1>
      ${
        mayChange &&
        html`<p class="actions">
          <a href="/-/links/${id}/edit">Edit</a>
          ${mayHandOver && html`<a href="${handOverPath(id)}">Hand over…</a>`}
          <a href="/-/links/${id}/delete">Delete…</a>
        </p>`
      }
    </div>
    ${isNew && saved(html`${shown}/${slug} is ready.`, { id: 'ready' })}
    ${title !== '' && html`<p class="lead"><bdi>${title}</bdi></p>`}
    ${end !== undefined && endNote(link, end, mayChange)}
    <section class="panel" aria-labelledby="link-title">
      <h2 id="link-title" class="hidden">The link</h2>
      ${shortAddress(short, slug)}
      <p>
        Leads to <a class="touch" href="/${slug}" rel="noreferrer"><bdi>${url}</bdi></a>
      </p>
      ${facts({
        'Further path': path,
        Tags: tags.length === 0 ? null : html`<span class="badges">${tagList(tags)}</span>`,
        Ends: expires_at !== null && timeTag(expires_at, 'exact'),
        Visits: max_visits !== null && `${link.clicks} of ${max_visits}`,
        Created: timeTag(link.created_at),
        Changed: timeTag(link.updated_at),
      })}
      ${description !== '' && html`<p class="description"><bdi>${description}</bdi></p>`}
      ${short.base !== '' && qrCode(slug, short)}
    </section>
    ${stats && statsPanel(stats)} ${healthSection(id, health, mayChange)} ${linkMembers(members)}`
  return { title: slug, section: 'links', script: 'links.js', body }
}

/** The link as a picture for phones, behind a click: few people open this page for it. */
function qrCode(slug: string, { base }: ShortLinks): Html {
  const path = `/-/links/${slug}/qr`
  const alt = `QR code of ${base}/${slug}`
  const content = html`<p><img class="qr" src="${path}.svg" alt="${alt}" loading="lazy" /></p>
    <p class="actions">
      <a href="${path}.svg" download="${slug}.svg">Download SVG</a>
      <a href="${path}.png" download="${slug}.png">Download PNG</a>
    </p>`
  return disclosed('QR code', content, { id: 'qr' })
}

function endNote(link: LinkAccess, end: End, mayChange: boolean): Html {
  const way = mayChange && html`<a href="/-/links/${link.id}/edit">Renew it</a>`
  return html`<p class="note">
    Visitors are told that it has ended. ${endText(link, end)} ${way}
  </p>`
}
