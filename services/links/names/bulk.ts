import type { Database } from '../../../db/client.ts'
import type { Link, LinkAccess } from '../../../db/links/names/links.ts'
import { Fault, Unavailable } from '../../../kernel/fault.ts'
import { linkFor, plainLink } from './links/links.ts'
import type { Caller } from '../people/users/groups.ts'

/** Links that may be chosen at a time: a form has 1,000 fields at most. */
export const MAX_CHOSEN = 900

/** Links that one request changes, each in a transaction of its own. The others follow. */
export const PORTION = 200

/** What became of the links that were chosen. */
export interface BulkReport {
  done: readonly Link[]
  refused: readonly RefusedChange[]
}

interface RefusedChange {
  /** Undefined if the link could not be read, for example because it was deleted meanwhile. */
  slug: string | undefined
  reason: string
}

const UNREACHABLE = 'the database is out of reach; look at the link, then try again'

/**
 * Changes links one after another, each by the rule of the single change: one that is refused does
 * not keep the others from being changed. Once the database is out of reach, none is tried any
 * more.
 */
export async function changeEach(
  db: Database,
  caller: Caller,
  ids: readonly string[],
  change: (link: LinkAccess) => Promise<unknown>,
): Promise<BulkReport> {
  const done: Link[] = []
  const refused: RefusedChange[] = []
  let isReachable = true
  for (const id of ids) {
    let slug: string | undefined
    try {
      if (!isReachable) throw new Unavailable(UNREACHABLE)
      const link = await linkFor(db, id, caller, 'change')
      slug = link.slug
      await change(link)
      done.push(plainLink(link))
    } catch (error) {
      if (!(error instanceof Fault || error instanceof Unavailable)) throw error
      isReachable = error instanceof Fault
      refused.push({ slug, reason: isReachable ? error.message : UNREACHABLE })
    }
  }
  return { done, refused }
}

/** The chosen links that are there and that the caller may change. */
export async function changeableLinks(
  db: Database,
  caller: Caller,
  ids: readonly string[],
): Promise<readonly Link[]> {
  const { done } = await changeEach(db, caller, ids, () => Promise.resolve())
  return done
}
