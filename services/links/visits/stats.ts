import * as Type from '../../../kernel/schema.ts'
import type { Database } from '../../../db/client.ts'
import { nullable, Timestamp } from '../../../db/sql-file.ts'
import { statsQueries as q, VisitDay } from '../../../db/links/visits/stats.ts'
import { notFound } from '../../../kernel/fault.ts'
import {
  CLICK_DAYS,
  firstClickDay,
  firstKeptMonth,
  KEPT_DAYS,
  type StatsLevel,
} from './visits/clicks.ts'
import { DAY_MS, MAX_HOSTS } from './visits/visit-counts.ts'

/** The statistics of a link. Nothing in them is about one visitor. */
export const Stats = Type.Object({
  total: Type.Integer({
    description: 'All visits of people and programs since the link was made',
  }),
  by_kind: Type.Object(
    {
      human: Type.Integer({ description: 'People' }),
      bot: Type.Integer({ description: 'Programs' }),
      preview: Type.Integer({
        description: 'Looks where it leads (`/slug+`), which are no visits',
      }),
    },
    { description: `Of the last ${KEPT_DAYS} days` },
  ),
  last_visit: nullable(Timestamp),
  days: Type.Array(VisitDay, { description: 'Days (UTC) with visits, oldest first' }),
  referrers: Type.Array(Type.Object({ host: Type.String(), visits: Type.Integer() }), {
    description:
      '`direct`: no referrer; `self`: pages of this service; `other`: addresses, and what is ' +
      `beyond ${MAX_HOSTS} hosts a day`,
  }),
  clients: Type.Array(Type.Object({ name: Type.String(), visits: Type.Integer() }), {
    description: 'Kinds of browsers and programs',
  }),
})
export type Stats = Type.Static<typeof Stats>

/** What statistics are read with. */
interface StatsTools {
  db: Database
  stats: () => StatsLevel
}

/** The statistics of a link over all days that are kept. */
export async function statsOf(tools: StatsTools, link: string, now: Date): Promise<Stats> {
  const { db } = tools
  const [totals, days, { referrers, clients }] = await Promise.all([
    q.findTotals(db, { link }),
    q.listVisitDays(db, { link, limit: KEPT_DAYS }),
    sourcesSince(tools, link, firstKeptMonth(now)),
  ])
  if (totals === undefined) throw notFound('no link has this id')
  const { total, last_visit, ...by_kind } = totals
  return {
    total,
    by_kind,
    last_visit,
    days: [...days],
    referrers: referrers.map(({ name, visits }) => ({ host: name, visits })),
    clients: [...clients],
  }
}

/** The clicks of the last days, and where they came from: what the page of a link shows. */
export async function lastDaysOf(tools: StatsTools, link: string, now: Date) {
  const since = firstClickDay(now)
  const [clicks, sources] = await Promise.all([
    q.listClicks(tools.db, { link, since, days: CLICK_DAYS }),
    sourcesSince(tools, link, since),
  ])
  return { clicks, ...sources }
}

/** The visits of links on each of the last days, the oldest first; nothing of links without any. */
export async function trendsOf(
  db: Database,
  links: readonly string[],
  now: Date,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const since = firstClickDay(now)
  const found = await q.listDayVisits(db, { links, since, limit: links.length * CLICK_DAYS })
  const trends = new Map<string, number[]>()
  for (const { link, day, visits } of found) {
    const trend = trends.get(link) ?? Array.from({ length: CLICK_DAYS }, () => 0)
    trend[(Date.parse(day) - Date.parse(since)) / DAY_MS] = visits
    trends.set(link, trend)
  }
  return trends
}

/** Where visits came from, and with what, the most frequent first. */
async function sourcesSince({ db, stats }: StatsTools, link: string, since: string) {
  // What was counted before waits for retention to remove it.
  if (stats() === 'totals') return { referrers: [], clients: [] }
  const asked = { link, since, most: MAX_HOSTS, limit: MAX_HOSTS + 1 }
  const [referrers, clients] = await Promise.all([
    q.listSources(db, { ...asked, by: 'referrers' }),
    q.listSources(db, { ...asked, by: 'clients' }),
  ])
  return { referrers, clients }
}

/** A link that nobody has visited for this long is unused. */
export const UNUSED_DAYS = 90

/** The place of a link among unused ones. */
export interface UnusedPlace {
  used_at: Date
  after: string
}

const FIRST: UnusedPlace = { used_at: new Date(0), after: '' }

/** Links with the most clicks: those that `owners` own or co-own, or all where it is null. */
export function mostUsedLinks(db: Database, owners: readonly string[] | null, limit: number) {
  return q.listMostUsed(db, { owners, limit })
}

/** Links without a visit for 90 days, the one unused for longest first. */
export function unusedLinks(
  db: Database,
  owners: readonly string[] | null,
  now: Date,
  { from = FIRST, limit }: { from: UnusedPlace | undefined; limit: number },
) {
  const before = new Date(now.getTime() - UNUSED_DAYS * DAY_MS)
  return q.listUnused(db, { owners, before, ...from, limit })
}
