import type { Executor } from '../../db/client.ts'
import { QueryError } from '../../db/errors.ts'
import { linkQueries } from '../../db/links/links.ts'
import { Fault } from '../../kernel/fault.ts'
import { linksFault } from './faults.ts'
import { transferQueries as q, type NewLink } from '../../db/links/transfer.ts'
import type { LinkParts } from './links.ts'
import { refuseLoop, type UrlWriter } from './loop.ts'
import { countTags, writeHiddenTags } from './tags.ts'
import { OPERATOR_EMAIL } from './users.ts'

/** Who imports works on this machine and may read every link. */
export const IMPORTER: UrlWriter = { id: null, role: 'admin' }

/** Why links of a batch were not made, by slug. */
export type Refusals = ReadonlyMap<string, Fault>

/**
 * Makes links, each with all that belongs to it: in one transaction those that lead elsewhere, one by
 * one those that lead to links, because each of them may close a loop. One that the database does not
 * take fails alone.
 */
export async function createImported(
  parts: Pick<LinkParts, 'db' | 'ownHosts'>,
  links: readonly NewLink[],
  at: Date,
): Promise<Refusals> {
  const refused = new Map<string, Fault>()
  const { plain = [], own = [] } = Object.groupBy(links, ({ url }) =>
    parts.ownHosts(new URL(url)) ? 'own' : 'plain',
  )
  for (const group of [plain, ...own.map((link) => [link])]) {
    for (const [slug, reason] of await createGroup(parts, group, at)) refused.set(slug, reason)
  }
  return refused
}

async function createGroup(
  parts: Pick<LinkParts, 'db' | 'ownHosts'>,
  links: readonly NewLink[],
  at: Date,
): Promise<Refusals> {
  const [first] = links
  if (first === undefined) return new Map()
  try {
    return await parts.db.transaction(async (tx) => {
      // Nothing to ask the database for, where a link leads elsewhere.
      await refuseLoop(tx, parts.ownHosts, IMPORTER, first.slug, first)
      return create(tx, links, at)
    })
  } catch (error) {
    if (error instanceof Fault) return new Map([[first.slug, error]])
    if (!(error instanceof QueryError)) throw error
    if (links.length === 1) {
      return new Map([[first.slug, linksFault('BAD_REQUEST', 'the database does not take it')]])
    }
    const alone = []
    for (const link of links) alone.push(...(await createGroup(parts, [link], at)))
    return new Map(alone)
  }
}

async function create(tx: Executor, links: readonly NewLink[], at: Date): Promise<Refusals> {
  const sorted = links.toSorted((a, b) => (a.slug < b.slug ? -1 : 1))
  const rows = await q.addImportedLinks(tx, {
    links: sorted,
    actor: OPERATOR_EMAIL,
    at,
    limit: sorted.length,
  })
  const made = new Set(rows.map(({ slug }) => slug))
  const [created, taken] = [
    links.filter(({ slug }) => made.has(slug)),
    links.filter(({ slug }) => !made.has(slug)),
  ]
  const hidden = created.filter(({ visibility }) => visibility !== 'public')
  await writeHiddenTags(
    tx,
    hidden.map(({ slug }) => slug),
  )
  await countTags(tx, [], created)
  await linkQueries.announceLinks(tx, { slugs: [...made] })
  const reason = linksFault('SLUG_CONFLICT', 'slug already taken', 'slug')
  return new Map(taken.map(({ slug }) => [slug, reason]))
}
