import type { Executor } from '../client.ts'
import { many, one } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { ExportedLink, NewLink } from './rows.ts'

/** Makes links with all that belongs to them but their tags' counters; gives the slugs that were not taken. */
export async function importLinks(
  tx: Executor,
  links: readonly NewLink[],
  actor: string,
  at: Date,
): Promise<readonly string[]> {
  const sorted = links.toSorted((a, b) => (a.slug < b.slug ? -1 : 1))
  const args = [sorted, actor, at, sorted.length]
  const rows = await many<{ readonly slug: string }>(tx, q.importLinks, args)
  return rows.map(({ slug }) => slug)
}

/** How many links are private or secure. */
export async function countHiddenLinks(db: Executor): Promise<number> {
  return (await one<{ readonly links: number }>(db, q.countHiddenLinks, [])).links
}

/** All links after a slug, with whom they are shared. */
export function listLinksToExport(
  db: Executor,
  after: string,
  limit: number,
): Promise<readonly ExportedLink[]> {
  return many(db, q.listLinksToExport, [after, limit])
}
