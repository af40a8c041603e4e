import { createHash } from 'node:crypto'
import type { Database, Executor } from '../../../../db/client.ts'
import { QueryError } from '../../../../db/errors.ts'
import { deletedQueries } from '../../../../db/links/names/deleted.ts'
import { historyQueries, type Change } from '../../../../db/links/names/history.ts'
import { linkQueries as q, type Link, type LinkAccess } from '../../../../db/links/names/links.ts'
import { memberQueries } from '../../../../db/links/names/members.ts'
import { tagQueries } from '../../../../db/links/names/tags.ts'
import { forbidden, notFound } from '../../../../kernel/fault.ts'
import type { Precondition } from '../../../../kernel/http/headers.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { linksFault } from '../../faults.ts'
import type { LinkCreation, LinkUpdate } from './input.ts'
import { ENDLESS } from './lifecycle.ts'
import { conflictOf } from './new.ts'
import { refuseLoop, type OwnHosts, type UrlWriter } from './loop.ts'
import { checkScheme, type Schemes } from './schemes.ts'
import { checkPlaces, type TargetFields } from './target.ts'
import { writeTexts } from '../lists/texts.ts'
import { countTags, type Tagged, writeHiddenTags } from '../tags.ts'
import { writeWords } from '../lists/words.ts'
import type { Caller } from '../../people/users/groups.ts'
import { announce, forgetLinks, namesOf, saveNames, type Named } from '../aliases/names.ts'

/** What links are changed with. */
export interface LinkParts {
  db: Database
  /** Hosts under which the resolver is reached, for urls that lead back to it. */
  ownHosts: OwnHosts
  /** Schemes beside http and https that new urls may have. */
  schemes: () => Schemes
  /**
   * Drops what this process knows of a name. Other processes are notified when the change commits.
   */
  forget: (name: string) => void
  log: Log
}

/**
 * A link that the caller may read or change (links.md section 5). Throws 404, then 403. Owners and
 * admins may change a link. Users that it is shared with may only read it.
 */
export async function linkFor(
  db: Executor,
  id: string,
  caller: Caller,
  purpose: 'read' | 'change',
): Promise<LinkAccess> {
  const link = await q.findLink(db, { id, users: caller.ids })
  if (link === undefined) throw notFound('no link has this id')
  if (mayChange(link, caller) || (purpose === 'read' && link.is_recipient)) return link
  throw forbidden(`this link is not yours to ${purpose}; ask one of its owners`)
}

/** The link with a slug. Throws 404 as well for callers who may not read it. */
export async function linkBySlug(db: Executor, slug: string, caller: Caller): Promise<LinkAccess> {
  const link = await q.findLinkBySlug(db, { slug, users: caller.ids })
  if (link !== undefined && mayRead(link, caller)) return link
  throw notFound('no link has this slug')
}

export function mayRead(
  link: Pick<LinkAccess, 'is_owner' | 'is_recipient'>,
  caller: Caller,
): boolean {
  return mayChange(link, caller) || link.is_recipient
}

export function mayChange(link: Pick<LinkAccess, 'is_owner'>, caller: Caller): boolean {
  return link.is_owner || caller.role === 'admin'
}

/** A link without the caller's rights to it, and without its clicks: neither is of its version. */
export function plainLink(found: LinkAccess): Link {
  const { is_owner: _owner, is_recipient: _recipient, clicks: _clicks, ...link } = found
  return link
}

/**
 * The version of a link: a hash of all that the API shows of it, with owners and tags. Its times
 * alone would not do: two changes may have the same time, and clocks are set back. The type
 * refuses a `LinkAccess`, whose clicks are no part of the version.
 */
export function versionOf(link: Link & { is_owner?: never }): string {
  return createHash('sha256').update(JSON.stringify(link)).digest('base64url')
}

/** What a new link has where its writer says nothing else. */
export const NEW_LINK = {
  visibility: 'public',
  append_path: false,
  ...ENDLESS,
  aliases: [],
} satisfies Partial<Link>

/** Creates a link with its primary owner, tags and first change. */
export async function createLink(
  parts: LinkParts,
  caller: Caller,
  input: LinkCreation,
  at: Date,
  owner: { id: string } = caller,
): Promise<Link> {
  const { slug } = input
  const created = await parts.db.transaction(async (tx) => {
    const link = withoutSlug({ ...NEW_LINK, ...input })
    checkPlaces(link)
    checkScheme(link, parts.schemes())
    await refuseLoop(tx, parts.ownHosts, caller, link)
    const added = await q.addLink(tx, { ...link, names: namesOf(link), at })
    if (added === undefined) throw await conflictOf(tx, slug)
    await memberQueries.addOwner(tx, { slug, user: owner.id, is_primary: true })
    await saveTags(tx, parts.log, [], link)
    await writeWords(tx, [link])
    await writeTexts(tx, [slug])
    const change = { action: 'created', detail: { url: [null, link.url] } }
    await historyQueries.saveChange(tx, { link: added.id, at, actor: caller.email, ...change })
    await announce(tx, link)
    return linkAfter(tx, added.id)
  })
  forgetLinks(parts, created)
  return created
}

/** A link whose aliases don't name its slug again. */
function withoutSlug<L extends Named>(link: L): L {
  return { ...link, aliases: link.aliases.filter((alias) => alias !== link.slug) }
}

/** Replaces what may change of a link; the slug stays. */
export function replaceLink(
  parts: LinkParts,
  caller: Caller,
  id: string,
  input: LinkUpdate,
  at: Date,
  precondition?: Precondition,
): Promise<Link> {
  const fields = () => Promise.resolve(input)
  return editLink(parts, caller, id, { action: 'edited', at, precondition, fields })
}

/** An edit of a link, and its name in the history. */
export interface Edit {
  action: string
  at: Date
  precondition: Precondition | undefined
  /** What is written, found under the link's lock. */
  fields(tx: Executor, link: Link): Promise<LinkUpdate>
}

export async function editLink(
  parts: LinkParts,
  caller: Caller,
  id: string,
  { action, at, precondition, fields }: Edit,
): Promise<Link> {
  const [before, replaced] = await changeLink(parts.db, caller, id, async (tx, link) => {
    checkVersion(link, precondition)
    const changed = withoutSlug({ ...link, ...(await fields(tx, plainLink(link))) })
    await checkEdit(tx, parts, caller, link, changed)
    await q.updateLink(tx, { ...changed, at })
    const detail = differences(link, changed)
    if (detail['aliases'] !== undefined) await saveNames(tx, id, changed)
    await saveTags(tx, parts.log, [link], changed)
    await writeWords(tx, [changed])
    await writeTexts(tx, [link.slug])
    await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, action, detail })
    await announce(tx, link, changed)
    return [link, await linkAfter(tx, id)]
  })
  forgetLinks(parts, before, replaced)
  return replaced
}

/** Throws the Fault of an edit that makes a link lead where it may not. */
export async function checkEdit(
  tx: Executor,
  { ownHosts, schemes }: Pick<LinkParts, 'ownHosts' | 'schemes'>,
  writer: UrlWriter,
  before: TargetFields,
  changed: TargetFields & Named,
): Promise<void> {
  checkPlaces(changed)
  if (changed.url !== before.url || changed.append_path) checkScheme(changed, schemes())
  await refuseLoop(tx, ownHosts, writer, changed)
}

/** Changes that are kept with a deleted link; the largest one takes 60 KB. */
const MAX_CHANGES_KEPT = 200

/**
 * Deletes a link. Its slug is free at once, and the link can be restored for some days. The audit
 * says who deleted it, because the history of the link is no longer shown.
 */
export async function deleteLink(
  { db, actor, forget }: Pick<LinkParts, 'forget'> & ChangeTools,
  caller: Caller,
  id: string,
  at: Date,
  precondition?: Precondition,
): Promise<void> {
  const deleted = await db.transaction(async (tx) => {
    await deletedQueries.lockMoves(tx, {})
    const link = await lockToChange(tx, caller, id)
    checkVersion(link, precondition)
    const by = { at, actor: caller.email }
    await historyQueries.saveChange(tx, { link: id, ...by, action: 'deleted', detail: {} })
    await deletedQueries.moveLink(tx, { id, ...by, changes: MAX_CHANGES_KEPT })
    await countTags(tx, [link], [])
    await announce(tx, link)
    const note = { service: 'links', action: 'link delete', subject: link.slug } as const
    await noteChange(tx, actor, note)
    return link
  })
  forgetLinks({ forget }, deleted)
}

/**
 * Changes a link in one transaction. The link is locked before the caller's right is checked, so
 * former owners cannot change it. A throw undoes the change.
 */
export function changeLink<T>(
  db: Database,
  caller: Caller,
  id: string,
  change: (tx: Executor, link: LinkAccess) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => change(tx, await lockToChange(tx, caller, id)))
}

async function lockToChange(tx: Executor, caller: Caller, id: string): Promise<LinkAccess> {
  await q.lockLink(tx, { id })
  return linkFor(tx, id, caller, 'change')
}

/** Throws 412 where the caller has seen another version of the link. */
export function checkVersion(link: LinkAccess, precondition: Precondition | undefined): void {
  if (precondition === undefined || precondition(versionOf(plainLink(link)))) return
  const problem = 'somebody else has changed the link meanwhile'
  throw linksFault('PRECONDITION_FAILED', `${problem}; get it again, then repeat your change`)
}

/**
 * Writes tags, or throws a Fault that undoes the whole change: tags are never dropped silently.
 */
async function saveTags(
  tx: Executor,
  log: Log,
  before: readonly Tagged[],
  after: Tagged & Pick<Link, 'slug'>,
): Promise<void> {
  const { slug, tags, visibility } = after
  try {
    await tagQueries.writeTags(tx, { slug, tags, is_public: visibility === 'public' })
    if ([...before, after].some(({ visibility }) => visibility !== 'public')) {
      await writeHiddenTags(tx, [slug])
    }
    await countTags(tx, before, [after])
  } catch (error) {
    if (!(error instanceof QueryError)) throw error
    log.error('tags not written', { error: messageOf(error) })
    const message = 'the tags could not be written, so nothing was changed; try again'
    throw linksFault('TAG_WRITE_FAILED', message)
  }
}

/** The values before and after of each field that changed. */
export function differences(before: Partial<Link>, after: Partial<Link>): Change['detail'] {
  const old: Readonly<Record<string, unknown>> = before
  return Object.fromEntries(
    Object.entries(after)
      .filter(([name, value]) => JSON.stringify(old[name]) !== JSON.stringify(value))
      .map(([name, value]) => [name, [old[name], value]]),
  )
}

/** A link that was just written. */
export async function linkAfter(tx: Executor, id: string): Promise<Link> {
  const link = await q.findLink(tx, { id, users: [] })
  if (link === undefined) throw new Error('a link that was just written is gone')
  return plainLink(link)
}
