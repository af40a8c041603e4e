import type { Executor } from '../../../../db/client.ts'
import { linkQueries as q } from '../../../../db/links/names/links.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { joinFaults } from '../../../../kernel/validate.ts'
import { linksFault } from '../../faults.ts'
import { readNewLinkForm, typedSlug, type LinkRequest, type NewLinkForm } from './input.ts'
import { slugsNear } from './slug.ts'

/** The free slug most similar to a text; undefined if no similar slug is free. */
export async function freeSlugNear(db: Executor, text: string): Promise<string | undefined> {
  const near = slugsNear(text)
  if (near.length === 0) return undefined
  const taken = await takenOf(db, near)
  return near.find((slug) => !taken.has(slug))
}

/**
 * The link that the form asks for. Throws the Fault of all fields that are wrong, also when the
 * slug is only taken: people correct them at once.
 */
export async function readNewLink(db: Executor, form: NewLinkForm): Promise<LinkRequest> {
  try {
    return readNewLinkForm(form)
  } catch (error) {
    if (!(error instanceof Fault) || Object.hasOwn(error.fields, 'slug')) throw error
    const slug = typedSlug(form.slug)
    const taken = await takenOf(db, [slug])
    throw taken.has(slug) ? joinFaults([slugTaken(), error]) : error
  }
}

/** The Fault of a slug or an alias that another link has (links.md section 7). */
export function slugTaken(field: 'slug' | 'aliases' = 'slug'): Fault {
  return linksFault('SLUG_CONFLICT', 'slug already taken', field)
}

/** The Fault of a link whose names could not be stored, because others have some of them. */
export async function conflictOf(tx: Executor, slug: string): Promise<Fault> {
  const taken = await takenOf(tx, [slug])
  return slugTaken(taken.has(slug) ? 'slug' : 'aliases')
}

async function takenOf(db: Executor, slugs: readonly string[]): Promise<ReadonlySet<string>> {
  const taken = await q.listTakenSlugs(db, { slugs, limit: slugs.length })
  return new Set(taken.map(({ slug }) => slug))
}
