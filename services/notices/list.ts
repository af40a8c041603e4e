import * as Type from '../../kernel/schema.ts'
import type { Database, Executor } from '../../db/client.ts'
import {
  Level,
  noticeQueries as q,
  Send,
  ShownNotice,
  type Site,
  type TargetState,
} from '../../db/notices.ts'
import { nullable, Timestamp } from '../../db/sql-file.ts'
import { found } from '../../kernel/fault.ts'
import type { SecretBox } from '../../kernel/secret-box.ts'
import type { Address } from './address.ts'
import { describeTarget, readTargets } from './targets.ts'

// Notices and the targets of notices, as pages and the API show them.

/** Public address of a service; empty for one that runs elsewhere and has no configured one. */
export type SiteUrl = (site: Site) => string

/** A notice with what its targets got of it. */
export const ListedNotice = Type.Object({
  ...Type.Omit(ShownNotice, ['site', 'path']).properties,
  url: Type.String({ description: 'The page that it is about' }),
  sends: Type.Array(Send, { description: 'The newest send to each target' }),
})
export type ListedNotice = Type.Static<typeof ListedNotice>

/** A target without its address, which may hold a key. */
export const ListedTarget = Type.Object({
  name: Type.String(),
  kind: nullable(Type.String()),
  host: nullable(Type.String()),
  services: nullable(Type.Array(Type.String())),
  levels: nullable(Type.Array(Level)),
  quiet: nullable(Type.String()),
  after_s: Type.Integer(),
  remind_s: nullable(Type.Integer()),
  taken_at: nullable(Timestamp),
  failing_since: nullable(Timestamp),
  waiting: Type.Integer({ description: 'Notices that it has not taken' }),
  problem: nullable(Type.String({ description: 'Why the last try failed' })),
})
export type ListedTarget = Type.Static<typeof ListedTarget>

/** How many sends of a notice are read. It never has as many targets. */
export const MAX_SENDS = 200

interface NoticeQuery {
  /** Whether only notices of what lasts are asked for. */
  lasting: boolean
  offset: number
  limit: number
}

/** Where the page is that a notice is about. */
export function pageOf(
  { site, path, id }: Pick<ShownNotice, 'site' | 'path' | 'id'>,
  at: SiteUrl,
) {
  const there = at(site)
  // The notice's own page has all that is known where its service runs elsewhere.
  return there === '' ? `${at('ops')}/notices/${id}` : `${there}${path}`
}

/** Notices, newest first. */
export async function listNotices(
  db: Executor,
  siteUrl: SiteUrl,
  { lasting, ...slice }: NoticeQuery,
): Promise<readonly ListedNotice[]> {
  const notices = lasting ? await q.listLastingNotices(db, slice) : await q.listNotices(db, slice)
  return withSends(db, siteUrl, notices)
}

/** The newest notices of those after the one with this time and id. */
export async function pageNotices(
  db: Executor,
  siteUrl: SiteUrl,
  after: { at: Date; id: number; limit: number },
): Promise<readonly ListedNotice[]> {
  return withSends(db, siteUrl, await q.pageNotices(db, after))
}

/** One of them; throws 404. */
export async function findListed(
  db: Executor,
  siteUrl: SiteUrl,
  id: number,
): Promise<ListedNotice> {
  const notice = found(await q.findNotice(db, { id }), 'notice')
  const [listed] = await withSends(db, siteUrl, [notice])
  return found(listed, 'notice')
}

async function withSends(db: Executor, siteUrl: SiteUrl, notices: readonly ShownNotice[]) {
  const ids = notices.map(({ id }) => id)
  const asked = { notices: ids, limit: MAX_SENDS * Math.max(1, ids.length) }
  const sends = Map.groupBy(await q.listSendsOf(db, asked), ({ notice_id }) => notice_id)
  return notices.map(({ site, path, ...notice }) => ({
    ...notice,
    url: pageOf({ site, path, id: notice.id }, siteUrl),
    sends: (sends.get(notice.id) ?? []).map(({ notice_id: _id, ...send }) => send),
  }))
}

/** All targets, those of the configuration first. */
export async function listTargets(
  db: Database,
  urls: readonly Address[],
  box: () => SecretBox | undefined,
): Promise<readonly ListedTarget[]> {
  const targets = await readTargets(db, urls, box)
  const names = targets.map(({ name }) => name)
  const states = await q.readTargetStates(db, { names, limit: names.length })
  return targets.map((target) => {
    const { since: _since, ...described } = describeTarget(target)
    const { taken_at, failing_since, waiting, problem } = stateOf(states, target.name)
    const known = { taken_at, failing_since, waiting }
    return { ...described, ...known, problem: described.problem ?? problem }
  })
}

function stateOf(states: readonly TargetState[], name: string): Omit<TargetState, 'target'> {
  const none = { taken_at: null, failing_since: null, waiting: 0, problem: null }
  return states.find(({ target }) => target === name) ?? none
}
