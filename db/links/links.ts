import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { Change, Link, LinkAccess, LinkFields } from './rows.ts'

/** A link by id, and what a user (null: nobody) is to it. */
export function findLink(
  db: Executor,
  id: string,
  user: string | null,
): Promise<LinkAccess | undefined> {
  return optional(db, q.findLink, [id, user])
}

/** A link by its exact slug, and what a user (null: nobody) is to it. */
export function findLinkBySlug(
  db: Executor,
  slug: string,
  user: string | null,
): Promise<LinkAccess | undefined> {
  return optional(db, q.findLinkBySlug, [slug, user])
}

/** Holds a link until the transaction ends; false when there is none. */
export async function lockLink(tx: Executor, id: string): Promise<boolean> {
  return (await optional(tx, q.lockLink, [id])) !== undefined
}

/** All links after a slug. */
export function listLinks(db: Executor, after: string, limit: number): Promise<readonly Link[]> {
  return many(db, q.listLinks, [after, limit])
}

/** The links that a user owns or co-owns, after a slug. */
export function listOwnLinks(
  db: Executor,
  user: string,
  after: string,
  limit: number,
): Promise<readonly Link[]> {
  return many(db, q.listOwnLinks, [user, after, limit])
}

/** The new link's id, or undefined when the slug is taken. */
export async function addLink(
  tx: Executor,
  slug: string,
  fields: LinkFields,
  at: Date,
): Promise<string | undefined> {
  const row = await optional<{ readonly id: string }>(tx, q.addLink, [slug, ...values(fields), at])
  return row?.id
}

export async function updateLink(
  tx: Executor,
  id: string,
  fields: LinkFields,
  at: Date,
): Promise<void> {
  await tx.run(q.updateLink, [id, ...values(fields), at])
}

/** Removes a link with all that belongs to it, but its tags' counters. */
export async function removeLink(tx: Executor, id: string): Promise<void> {
  await tx.run(q.removeLink, [id])
}

/** Waits until no other transaction writes a link that leads to this resolver. */
export async function takeLoopTurn(tx: Executor): Promise<void> {
  await tx.run(q.takeLoopTurn, [])
}

/** Has every instance forget what it knows of these slugs, once the transaction commits. */
export async function announceLinks(tx: Executor, slugs: readonly string[]): Promise<void> {
  await tx.run(q.announceLinks, [slugs])
}

/** Notes what was done to a link, and by whom. */
export async function saveChange(
  tx: Executor,
  link: string,
  { at, actor, action, detail }: Omit<Change, 'id'>,
): Promise<void> {
  await tx.run(q.saveChange, [link, at, actor, action, detail])
}

/** What was done to a link, newest first. */
export function listChanges(db: Executor, link: string, limit: number): Promise<readonly Change[]> {
  return many(db, q.listChanges, [link, limit])
}

function values(fields: LinkFields): readonly unknown[] {
  const { url, title, description, visibility, append_path } = fields
  return [url, title, description, visibility, append_path]
}
