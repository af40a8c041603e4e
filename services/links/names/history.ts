import type { Executor } from '../../../db/client.ts'
import { historyQueries as q, type Change } from '../../../db/links/names/history.ts'
import type { Link } from '../../../db/links/names/links.ts'
import { notFound } from '../../../kernel/fault.ts'
import type { Precondition } from '../../../kernel/http/headers.ts'
import { validate } from '../../../kernel/validate.ts'
import { LinkUpdate } from './links/input.ts'
import { editLink, type LinkParts } from './links/links.ts'
import type { Caller } from '../people/users/groups.ts'

const RESTORED = 'version restored'

/** Changes that write fields of a link. The others are about its owners, shares, or the whole. */
const WRITING: ReadonlySet<string> = new Set(['created', 'imported', 'edited', RESTORED])

/** Whether a change left a version of the link's fields that can be restored. */
export function leavesVersion({ action }: Change): boolean {
  return WRITING.has(action)
}

/** A link's fields as they were after a change, and that change. Throws 404. */
export async function versionAfter(
  db: Executor,
  link: Link,
  id: number,
): Promise<{ change: Change; fields: LinkUpdate }> {
  const change = await q.findChange(db, { link: link.id, change: id })
  if (change === undefined || !leavesVersion(change)) {
    throw notFound('the history of this link has no such version')
  }
  const limit = Object.keys(LinkUpdate.properties).length
  const asked = { link: link.id, change: id, actions: [...WRITING], limit }
  const later = await q.listLaterValues(db, asked)
  const values = Object.fromEntries(later.map(({ name, value }) => [name, value]))
  const { expires_at } = link
  const now = { ...link, expires_at: expires_at === null ? null : expires_at.toISOString() }
  // Names stay: people may use the present ones, and others may have the former ones.
  return { change, fields: validate(LinkUpdate, { ...now, ...values, aliases: link.aliases }) }
}

/** Writes a link's fields as they were after a change. Owners, shares and names stay. */
export function restoreVersion(
  parts: LinkParts,
  caller: Caller,
  { link: id, change }: { link: string; change: number },
  at: Date,
  precondition?: Precondition,
): Promise<Link> {
  return editLink(parts, caller, id, {
    action: RESTORED,
    at,
    precondition,
    fields: async (tx, link) => (await versionAfter(tx, link, change)).fields,
  })
}
