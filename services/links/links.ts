import type { Database, Executor } from '../../db/client.ts'
import { QueryError } from '../../db/errors.ts'
import {
  addLink,
  announceLinks,
  findLink,
  lockLink,
  removeLink,
  saveChange,
  updateLink,
} from '../../db/links/links.ts'
import { addOwner } from '../../db/links/members.ts'
import type { Change, Link, LinkAccess, LinkFields } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { countTags, writeHiddenTags, writeTags } from '../../db/links/tags.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { LinkInput } from './link-input.ts'
import { refuseLoop, type OwnHosts } from './loop.ts'
import { isRefusal, refusal, type Refusal } from './refusal.ts'
import { tagCounts } from './tags.ts'
import { createHash } from 'node:crypto'

/** What links are changed with. */
export interface LinkParts {
  readonly db: Database
  /** Hosts under which the resolver is reached, for urls that lead back to it. */
  readonly ownHosts: OwnHosts
  /** Drops what this process knows of a slug: other processes are told when the change commits. */
  readonly forget: (slug: string) => void
  /** Is told what no caller is. */
  readonly log: Log
}

const ALWAYS: Precondition = () => true

const CHANGED_MEANWHILE = refusal(
  'PRECONDITION_FAILED',
  'somebody else has changed the link meanwhile; get it again, then repeat your change',
)

/** A refusal that undoes what its transaction did so far. */
class Refused extends Error {
  readonly refusal: Refusal
  constructor(reason: Refusal, options?: ErrorOptions) {
    super(reason.message, options)
    this.refusal = reason
  }
}

/** Makes a link with its owner, tags and first change, or nothing at all. */
export async function createLink(
  parts: LinkParts,
  caller: User,
  slug: string,
  input: LinkInput,
  at: Date,
): Promise<Link | Refusal> {
  const result = await inTransaction(parts.db, async (tx) => {
    const fields = fieldsOf(input, { visibility: 'public', append_path: false })
    const loop = await refuseLoop(tx, parts.ownHosts, caller, slug, fields)
    if (loop !== undefined) throw new Refused(loop)
    const id = await addLink(tx, slug, fields, at)
    if (id === undefined) throw new Refused(refusal('SLUG_CONFLICT', 'slug already taken', 'slug'))
    await addOwner(tx, slug, caller.id, true)
    const link = { tags: input.tags, visibility: fields.visibility }
    await saveTags(tx, parts.log, slug, undefined, link)
    await saveChange(tx, id, changed(caller, at, 'created', { url: [null, fields.url] }))
    await announceLinks(tx, [slug])
    return shown(tx, id)
  })
  parts.forget(slug)
  return result
}

/** Replaces what may change of a link; the slug stays. */
export async function replaceLink(
  parts: LinkParts,
  caller: User,
  id: string,
  input: LinkInput,
  at: Date,
  precondition: Precondition = ALWAYS,
): Promise<Link | Refusal> {
  const result = await changeLink(parts.db, caller, id, async (tx, link) => {
    if (!precondition(versionOf(plainLink(link)))) throw new Refused(CHANGED_MEANWHILE)
    const fields = fieldsOf(input, link)
    const loop = await refuseLoop(tx, parts.ownHosts, caller, link.slug, fields)
    if (loop !== undefined) throw new Refused(loop)
    await updateLink(tx, id, fields, at)
    const after = { tags: input.tags, visibility: fields.visibility }
    await saveTags(tx, parts.log, link.slug, link, after)
    const detail = differences(link, { ...fields, tags: input.tags })
    await saveChange(tx, id, changed(caller, at, 'edited', detail))
    await announceLinks(tx, [link.slug])
    return shown(tx, id)
  })
  if (!isRefusal(result)) parts.forget(result.slug)
  return result
}

/** Removes a link; its slug is free again. */
export async function deleteLink(
  { db, forget }: Pick<LinkParts, 'db' | 'forget'>,
  caller: User,
  id: string,
  precondition: Precondition = ALWAYS,
): Promise<Refusal | undefined> {
  const result = await changeLink(db, caller, id, async (tx, link) => {
    if (!precondition(versionOf(plainLink(link)))) throw new Refused(CHANGED_MEANWHILE)
    await removeLink(tx, id)
    await countTags(tx, tagCounts([link], []))
    await announceLinks(tx, [link.slug])
    return link.slug
  })
  if (isRefusal(result)) return result
  forget(result)
  return undefined
}

/**
 * Changes a link in one transaction that holds it from before the caller's right is looked at: nobody
 * changes what is no longer theirs. `work` may throw nothing but `Refused` and faults.
 */
export function changeLink<T>(
  db: Database,
  caller: User,
  id: string,
  work: (tx: Executor, link: LinkAccess) => Promise<T>,
): Promise<T | Refusal> {
  return inTransaction(db, async (tx) => {
    await lockLink(tx, id)
    const link = await linkFor(tx, id, caller, 'change')
    if (isRefusal(link)) throw new Refused(link)
    return work(tx, link)
  })
}

/** An entry of a link's history. */
export function changed(
  caller: User,
  at: Date,
  action: string,
  detail: Change['detail'],
): Omit<Change, 'id'> {
  return { at, actor: caller.email, action, detail }
}

/** Ends a transaction of `changeLink` with a refusal: what it did so far is undone. */
export function undo(reason: Refusal): never {
  throw new Refused(reason)
}

async function inTransaction<T>(
  db: Database,
  work: (tx: Executor) => Promise<T>,
): Promise<T | Refusal> {
  try {
    return await db.transaction(work)
  } catch (error) {
    if (error instanceof Refused) return error.refusal
    throw error
  }
}

/** Tags are never dropped in silence: when they can't be written, nothing of the change is. */
async function saveTags(
  tx: Executor,
  log: Log,
  slug: string,
  before: Pick<Link, 'tags' | 'visibility'> | undefined,
  after: Pick<Link, 'tags' | 'visibility'>,
): Promise<void> {
  try {
    await writeTags(tx, slug, after.tags, after.visibility === 'public')
    if (isHidden(before) || isHidden(after)) await writeHiddenTags(tx, [slug])
    await countTags(tx, tagCounts(before === undefined ? [] : [before], [after]))
  } catch (error) {
    if (!(error instanceof QueryError)) throw error
    log.error('tags not written', { error: messageOf(error) })
    const message = 'the tags could not be written, so nothing was changed; try again'
    throw new Refused(refusal('TAG_WRITE_FAILED', message), { cause: error })
  }
}

/** Whether a link has something that the counters of public links don't tell. */
function isHidden(link: Pick<Link, 'visibility'> | undefined): boolean {
  return link !== undefined && link.visibility !== 'public'
}

function fieldsOf(
  { url, title, description, visibility, append_path }: LinkInput,
  kept: Pick<LinkFields, 'visibility' | 'append_path'>,
): LinkFields {
  return {
    url,
    title,
    description,
    visibility: visibility ?? kept.visibility,
    append_path: append_path ?? kept.append_path,
  }
}

/** Before and after of each field that changed. */
function differences(
  before: Link,
  after: LinkFields & Pick<Link, 'tags'>,
): Readonly<Record<string, unknown[]>> {
  const old: Readonly<Record<string, unknown>> = before
  return Object.fromEntries(
    Object.entries(after)
      .filter(([name, value]) => JSON.stringify(old[name]) !== JSON.stringify(value))
      .map(([name, value]) => [name, [old[name], value]]),
  )
}

async function shown(tx: Executor, id: string): Promise<Link> {
  const link = await findLink(tx, id, null)
  if (link === undefined) throw new Error('a link that was just written is gone')
  return plainLink(link)
}

/** What a caller wants with a link: `read` also for whom it is shared with, `change` for owners only. */
export type Purpose = 'read' | 'change'

/** A link that the caller may read or change (links.md section 5), or why not: 404 before 403. */
export async function linkFor(
  db: Executor,
  id: string,
  caller: User,
  purpose: Purpose,
): Promise<LinkAccess | Refusal> {
  const link = await findLink(db, id, caller.id)
  if (link === undefined) return refusal('NOT_FOUND', 'no link has this id')
  if (link.is_owner || caller.role === 'admin') return link
  if (purpose === 'read' && link.is_recipient) return link
  return refusal('FORBIDDEN', `this link is not yours to ${purpose}; ask one of its owners`)
}

/** A link without what the caller is to it. */
export function plainLink(found: LinkAccess): Link {
  const { is_owner: _owner, is_recipient: _recipient, ...link } = found
  return link
}

/** A link as the API shows it: what the caller is to it is not part of its version. */
type ShownLink = Link & { readonly is_owner?: never }

/** Whether a change may be made to the link as it is in this version. */
export type Precondition = (version: string) => boolean

/**
 * The version of a link: a hash of all that the API shows of it, with owners and tags. Times alone
 * would not do: two changes may have the same one, and clocks are set back.
 */
export function versionOf(link: ShownLink): string {
  return createHash('sha256').update(JSON.stringify(link)).digest('base64url')
}
