import type { Fields, IfMatch } from './model-calls.ts'
import { canonical } from './model-compare.ts'
import type { Link, Model, Share, Token, User, Written } from './model-state.ts'

type Shown = Readonly<Record<string, unknown>> & { readonly owners: readonly unknown[] }

/** A link as the API shows it. */
export function shown(model: Model, link: Link): Shown {
  const { id, slug, url, title, description, tags, visibility, times } = link
  const { expires_at, max_visits, archived } = link
  const owners = link.owners.map((owner, at) => ({
    id: owner,
    email: model.users.get(owner)?.email,
    is_primary: at === 0,
  }))
  const fields = { id, slug, url, title, description, tags, visibility, append_path: false }
  return { ...fields, expires_at, max_visits, archived, aliases: [], owners, ...times }
}

/** The same, in an answer that tells the ETag. */
export function shownWithTag(model: Model, link: Link): object {
  link.seen = versionOf(model, link)
  return shown(model, link)
}

/** Whether a change may be made, as the link is now. */
export function isMatched(model: Model, link: Link, ifMatch: IfMatch | undefined): boolean {
  if (ifMatch === 'seen') return link.seen === versionOf(model, link)
  return ifMatch !== 'other'
}

function versionOf(model: Model, link: Link): string {
  return JSON.stringify(canonical(shown(model, link)))
}

export function shownShare(model: Model, { id, shared_by, created_at }: Share): object {
  return { id, email: model.users.get(id)?.email, shared_by, created_at }
}

export function shownToken({ id, name, scope, times }: Token): object {
  return { id, name, scope, ...times }
}

/** What a writer may leave out without clearing it. */
type Kept = Pick<Link, 'visibility' | 'expires_at' | 'max_visits' | 'archived'>
const NEW: Kept = { visibility: 'public', expires_at: null, max_visits: null, archived: false }

/** The fields of a link as they are stored: what is omitted is empty, or as before. */
export function written(fields: Omit<Fields, 'slug'>, before: Kept = NEW): Written {
  const { url, title = '', description = '', tags = [] } = fields
  const normal = tags.map((tag) => tag.toLowerCase().replaceAll(/[_ ]/g, '-'))
  const { visibility = before.visibility, expires_at = before.expires_at } = fields
  const { max_visits = before.max_visits, archived = before.archived } = fields
  const kept = { visibility, expires_at, max_visits, archived: archived ?? false }
  return { url, title, description, tags: [...new Set(normal)].sort(), ...kept }
}

export function bySlug(model: Model, slug: string): Link | undefined {
  return [...model.links.values()].find((link) => link.slug === slug)
}

/**
 * Whether the caller is told that a link with this slug and url would lead back to itself, by way of
 * others too, or into such a loop. Of a secure link one is told nothing, unless one may follow it.
 */
export function loops(model: Model, caller: User, slug: string, url: string): boolean {
  const seen = new Set<string>()
  let { host, pathname } = new URL(url)
  while (host === model.own) {
    const next = pathname.slice(1)
    if (next === slug) return true
    const link = bySlug(model, next)
    if (link === undefined || !mayFollow(caller, link)) return false
    if (seen.has(next)) return true
    seen.add(next)
    ;({ host, pathname } = new URL(link.url))
  }
  return false
}

function mayFollow({ id, role }: User, { visibility, owners, shares }: Link): boolean {
  if (visibility !== 'secure' || role === 'admin') return true
  return owners.includes(id) || shares.some((share) => share.id === id)
}
