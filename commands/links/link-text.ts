import type { LinkAccess } from '../../db/links/names/links.ts'
import type { ListedLink } from '../../db/links/names/lists.ts'
import { primaryOwner } from '../../html/links/names/links/links.ts'
import { escapeControls } from '../../kernel/text.ts'
import { endOf } from '../../services/links/names/links/lifecycle.ts'
import type { Stats } from '../../services/links/visits/stats.ts'
import { factLines, table } from '../frame/output.ts'

// What people read of links; programs get the JSON of the API.

/** Days with visits that are listed. */
const SHOWN_DAYS = 30

export const LIST_HEAD = lineOf('SLUG', 'STATE', 'CLICKS', 'OWNER', 'URL')

export function lineOfLink(link: ListedLink, now: Date): string {
  const { slug, clicks, owners, url } = link
  return lineOf(slug, stateOf(link, now), String(clicks), primaryOwner(owners) ?? '', url)
}

function stateOf(link: Parameters<typeof endOf>[0], now: Date): string {
  return endOf(link, now) ?? 'active'
}

/** Pads short texts to columns: lines are printed as they are read. */
function lineOf(slug: string, state: string, clicks: string, owner: string, url: string): string {
  const cells = [slug.padEnd(24), state.padEnd(8), clicks.padStart(8), owner.padEnd(24), url]
  // A newline in a cell would fake a line.
  return cells.map(escapeControls).join('  ')
}

export function linesOfLink(link: LinkAccess, address: string, now: Date): readonly string[] {
  const { tags, owners, expires_at, max_visits } = link
  return factLines({
    address,
    url: link.url,
    title: link.title,
    description: link.description,
    tags: tags.join(', '),
    owners: owners.map(({ email }) => email).join(', '),
    visibility: link.visibility,
    'append path': link.append_path,
    state: stateOf(link, now),
    expires: expires_at?.toISOString() ?? 'never',
    'max visits': max_visits ?? 'none',
    clicks: link.clicks,
    created: link.created_at.toISOString(),
    changed: link.updated_at.toISOString(),
  })
}

export function linesOfStats(stats: Stats): readonly string[] {
  const { total, by_kind, last_visit, days, referrers, clients } = stats
  const facts = factLines({
    visits: total,
    'last visit': last_visit?.toISOString() ?? 'never',
    people: by_kind.human,
    programs: by_kind.bot,
    previews: by_kind.preview,
    'came from': referrers.map(({ host, visits }) => `${host} ${visits}`).join(', '),
    'came with': clients.map(({ name, visits }) => `${name} ${visits}`).join(', '),
  })
  const shown = days.slice(-SHOWN_DAYS)
  if (shown.length === 0) return facts
  const rows = shown.map(({ day, visits }) => [day, String(visits)])
  return [...facts, '', ...table(['DAY', 'VISITS'], rows)]
}
