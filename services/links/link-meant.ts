import { slugsMeant } from './slug.ts'
import type { KnownLink, TargetCache, VisitLevel } from './target-cache.ts'

/** The link that a visitor means by a name: the best of the slugs that it may stand for. */
export async function linkMeant(
  targets: TargetCache,
  name: string,
  now: number,
  level: VisitLevel,
): Promise<KnownLink | undefined> {
  for (const slug of slugsMeant(name)) {
    const link = await targets.find(slug, now, level)
    if (link !== undefined) return link
  }
  return undefined
}
