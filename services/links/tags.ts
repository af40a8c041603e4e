import type { Database } from '../../db/client.ts'
import type { Link, Tag, User } from '../../db/links/rows.ts'
import { listTagLinks, listTags } from '../../db/links/tags.ts'
import { refusal, type Refusal } from './refusal.ts'

/** The tags of links that the caller may see, after a tag; admins see all. */
export function tagsFor(
  db: Database,
  caller: User,
  after: string,
  limit: number,
): Promise<readonly Tag[]> {
  return listTags(db, scopeOf(caller), after, limit)
}

/**
 * The links with a tag that the caller may see, after a slug. A tag without any such link is like one
 * that does not exist, on every page of its list.
 */
export async function linksTagged(
  db: Database,
  caller: User,
  tag: string,
  after: string,
  limit: number,
): Promise<readonly Link[] | Refusal> {
  const links = await listTagLinks(db, tag, scopeOf(caller), after, limit)
  if (links.length > 0) return links
  const any = await listTagLinks(db, tag, scopeOf(caller), '', 1)
  return any.length > 0 ? [] : refusal('NOT_FOUND', 'tag not found')
}

/** Whose links count: null for everybody's. */
function scopeOf({ role, id }: User): string | null {
  return role === 'admin' ? null : id
}
