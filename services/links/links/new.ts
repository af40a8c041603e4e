import type { Executor } from '../../../db/client.ts'
import { linkQueries as q } from '../../../db/links/links.ts'
import { Fault } from '../../../kernel/fault.ts'
import { joinFaults } from '../../../kernel/validate.ts'
import { linksFault } from '../faults.ts'
import { readNewLinkForm, typedSlug, type LinkCreation, type NewLinkForm } from './input.ts'
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
export async function readNewLink(db: Executor, form: NewLinkForm): Promise<LinkCreation> {
  try {
    return readNewLinkForm(form)
  } catch (error) {
    if (!(error instanceof Fault) || Object.hasOwn(error.fields, 'slug')) throw error
    const slug = typedSlug(form.slug)
    const taken = await takenOf(db, [slug])
    throw taken.has(slug) ? joinFaults([slugTaken(), error]) : error
  }
}

/** The Fault of a slug that another link has (links.md section 7). */
export function slugTaken(): Fault {
  return linksFault('SLUG_CONFLICT', 'slug already taken', 'slug')
}

async function takenOf(db: Executor, slugs: readonly string[]): Promise<ReadonlySet<string>> {
  const taken = await q.listTakenSlugs(db, { slugs, limit: slugs.length })
  return new Set(taken.map(({ slug }) => slug))
}
