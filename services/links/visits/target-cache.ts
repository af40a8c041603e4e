import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../../db/client.ts'
import type { Level } from '../../../db/levels.ts'
import type { Target as TargetRow } from '../../../db/links/visits.ts'
import { createBoundedMap, type BoundedMap } from '../../../kernel/bounded-map.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { prepareTarget, type Target } from '../links/target.ts'
import { createTargetReads, type ReadTarget } from './target-reads.ts'

/** A link as a visit needs it. */
export interface KnownLink extends Target, TargetRow {
  /**
   * Whether only owners, recipients and admins may follow it. Stored, because every visit asks.
   */
  isSecure: boolean
}

/** The visitor that a link is read for: a user named by the proxy, or anybody. */
export type VisitLevel = Extract<Level, 'trusted' | 'strangers'>

/** Trusted visitors don't wait behind strangers, and no visitor behind links that are renewed. */
const READERS = ['trusted', 'strangers', 'renewals'] as const
type Reader = (typeof READERS)[number]

/** Links in memory, so that a visit asks no database. */
export type TargetCache = Awaited<ReturnType<typeof openTargetCache>>

/** When something was read. */
interface ReadAt {
  at: number
  /** How often the connection for notices had been replaced by then. */
  reconnects: number
}

interface Entry extends ReadAt {
  link: KnownLink
}

/** What the cache has in memory. */
interface Memory {
  /**
   * By `/slug`, the path of a visit: cutting the slug out would make a new string. Links that are
   * visited are read again every 15 s, so the oldest one is one that nobody visits.
   */
  entries: BoundedMap<Entry>
  /** Slugs without a link. Kept apart, so that made-up slugs push no link out of memory. */
  misses: BoundedMap<ReadAt>
  read: Readonly<Record<Reader, ReadTarget>>
  /** What is being read, by reader and slug. */
  reading: Map<string, Promise<KnownLink | undefined>>
  /** Entries from before the last reconnect are outdated: notices may have been missed. */
  reconnects: number
}

/** Bytes of links in memory: 3,800 of the longest, and 60,000 with addresses of 100 characters. */
const MAX_BYTES = 32 * 2 ** 20
/** What a link takes beside its texts, and what a slug without a link takes: measured. */
const LINK_BYTES = 450
const MISS_BYTES = 150
/** Bytes of slugs without a link: some 10,000. */
const MAX_MISS_BYTES = 2 * 2 ** 20
/** Slugs that wait to be read: of visits as many as statements of that level may wait. */
const MAX_WAITING: Readonly<Record<Reader, number>> = {
  trusted: 2_048,
  strangers: 512,
  renewals: 256,
}
/**
 * A link that was read before this time is read again, and given meanwhile: visits would wait
 * behind what else the database does, clicks among it.
 */
const RENEW_MS = 15_000
/** Every change is announced; this bounds the harm of a lost notice. */
const FRESH_MS = 30_000
/** How long it is remembered that a slug has no link. It only limits the load of a flood. */
const MISS_FRESH_MS = 1_000
/** How long a visit waits for the database when an outdated link is in memory. */
const MAX_WAIT_MS = 250
/** How long outdated links are given without asking the database, after it failed. */
const PAUSE_MS = 1_000

/** What a snapshot has was read by an earlier process. */
const BEFORE_START: ReadAt = { at: -Infinity, reconnects: -1 }

/** Opens the cache: changes by any instance reach it by NOTIFY. */
export async function openTargetCache(db: Database, metrics: Metrics, maxBytes = MAX_BYTES) {
  const entries = createBoundedMap<Entry>(maxBytes, linkBytes)
  const misses = createBoundedMap<ReadAt>(MAX_MISS_BYTES, (slug) => MISS_BYTES + slug.length)
  const read = {
    trusted: createTargetReads(db.at('trusted'), MAX_WAITING.trusted),
    strangers: createTargetReads(db.at('strangers'), MAX_WAITING.strangers),
    renewals: createTargetReads(db.at('strangers'), MAX_WAITING.renewals),
  }
  const memory: Memory = { entries, misses, read, reading: new Map(), reconnects: 0 }
  let failedAt = -Infinity

  const { fromMemory, fromDatabase, fromOutdated } = measure(memory, metrics)

  // A notice without a slug means that the connection is new.
  await db.listen('links_changed', (slug) => {
    if (slug === undefined) memory.reconnects++
    else forget(memory, slug)
  })

  /** The link of a path (`/slug`) if it is in memory and up to date. */
  function fresh(path: string, now: number): KnownLink | undefined {
    const entry = entries.get(path)
    if (entry === undefined || !isFresh(memory, entry, now, FRESH_MS)) return undefined
    if (!isWithin(RENEW_MS, entry.at, now)) renew(memory, entry.link, now)
    fromMemory()
    return entry.link
  }

  return {
    fresh,
    /** Drops what is in memory about a slug, which has just changed. */
    forget: (slug: string) => forget(memory, slug),

    /** Takes links of a snapshot, the most used first: outdated ones, for lack of a database. */
    restore(rows: readonly TargetRow[]) {
      for (const row of rows.toReversed()) {
        entries.set(`/${row.slug}`, { ...BEFORE_START, link: toKnownLink(row) })
      }
    },

    /**
     * The link with a slug, from memory or the database. If the database is out of reach, gives an
     * outdated link, but never a secure one; else throws `Unavailable`.
     */
    async find(slug: string, now: number, level: VisitLevel) {
      const known = fresh(`/${slug}`, now)
      if (known !== undefined) return known
      const miss = misses.get(slug)
      if (miss !== undefined && isFresh(memory, miss, now, MISS_FRESH_MS)) {
        fromMemory()
        return undefined
      }
      const outdated = entries.get(`/${slug}`)?.link
      const mayBeGiven = outdated !== undefined && !outdated.isSecure
      if (mayBeGiven && isWithin(PAUSE_MS, failedAt, now)) {
        fromOutdated()
        return outdated
      }
      fromDatabase()
      if (!mayBeGiven) return load(memory, slug, now, level)
      try {
        return await Promise.race([load(memory, slug, now, level), lateAnswer()])
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        failedAt = now
        fromOutdated()
        return outdated
      }
    },
  }
}

/** Whether visits of a link have ended. */
export function hasEnded({ ends_at }: KnownLink, now: number): boolean {
  return ends_at !== null && now >= ends_at
}

/** A visit of a link was redirected: the last one that the link allows ends it here. */
export function countVisit(link: KnownLink): void {
  if (link.visits_left === null) return
  link.visits_left--
  if (link.visits_left <= 0) link.ends_at = -Infinity
}

/** The url is percent-encoded and the others are ASCII: a byte a character. */
function linkBytes(path: string, { link: { id, slug, url } }: Entry): number {
  return LINK_BYTES + path.length + id.length + slug.length + url.length
}

function measure({ entries }: Memory, metrics: Metrics) {
  metrics.gauge('gatehouse_links_cached', 'Links in memory.', () => [[{}, entries.size]])
  const help = 'Bytes that links in memory take.'
  metrics.gauge('gatehouse_links_cached_bytes', help, () => [[{}, entries.bytes]])
  const lookups = metrics.counter('gatehouse_links_lookups', 'Links looked up, by where from.')
  return {
    fromMemory: lookups.series({ source: 'memory' }),
    fromDatabase: lookups.series({ source: 'database' }),
    fromOutdated: lookups.series({ source: 'stale' }),
  }
}

function forget({ entries, misses, reading }: Memory, slug: string): void {
  entries.delete(`/${slug}`)
  misses.delete(slug)
  // What is being read may be the old version: it is given to those who wait, but not stored.
  for (const reader of READERS) reading.delete(`${reader} ${slug}`)
}

function isFresh({ reconnects }: Memory, read: ReadAt, now: number, forMs: number): boolean {
  return read.reconnects === reconnects && isWithin(forMs, read.at, now)
}

/** Reads a link again, for later visits: they do it if this fails. */
function renew(memory: Memory, { slug }: KnownLink, now: number): void {
  load(memory, slug, now, 'renewals').catch(() => undefined)
}

function load(memory: Memory, slug: string, now: number, reader: Reader) {
  const { entries, misses, reading, reconnects } = memory
  const key = `${reader} ${slug}`
  const running = reading.get(key)
  if (running !== undefined) return running
  const asked = { at: now, reconnects }
  const started = memory.read[reader](slug).then((row) => {
    const link = row && toKnownLink(row)
    if (reading.get(key) !== started) return link
    reading.delete(key)
    entries.delete(`/${slug}`)
    misses.delete(slug)
    if (link === undefined) misses.set(slug, asked)
    else entries.set(`/${slug}`, { ...asked, link })
    return link
  })
  reading.set(key, started)
  started.catch(() => {
    if (reading.get(key) === started) reading.delete(key)
  })
  return started
}

function toKnownLink(row: TargetRow): KnownLink {
  return { ...prepareTarget(row), isSecure: row.visibility === 'secure' }
}

/** Whether two times are close; the clock may have been set back between them. */
function isWithin(ms: number, at: number, now: number): boolean {
  return Math.abs(now - at) <= ms
}

/** Rejects when the database takes too long. */
async function lateAnswer(): Promise<never> {
  await delay(MAX_WAIT_MS, undefined, { ref: false })
  throw new Unavailable('the database is slow')
}
