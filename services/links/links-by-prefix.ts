import type { Database } from '../../db/client.ts'
import { listLinks } from '../../db/links/links.ts'
import type { Link } from '../../db/links/rows.ts'
import { beforeSlugs } from './slug.ts'

/** What a slug may begin with: other text finds no link. */
const BEGINNING = /^[a-z0-9-]*$/

/**
 * All links whose slug begins with a text, after a slug. Lists go by slug, so these stand next to each
 * other: the list is read from where they begin.
 */
export async function linksByPrefix(
  db: Database,
  prefix: string,
  after: string,
  limit: number,
): Promise<readonly Link[]> {
  if (!BEGINNING.test(prefix)) return []
  const start = beforeSlugs(prefix)
  const links = await listLinks(db, after > start ? after : start, limit)
  return links.filter(({ slug }) => slug.startsWith(prefix))
}
