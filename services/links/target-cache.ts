import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../db/client.ts'
import type { Level } from '../../db/pool.ts'
import { visitQueries as q, type Target as TargetRow } from '../../db/links/visits.ts'
import { Unavailable } from '../../kernel/fault.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { prepareTarget, type Target } from './target.ts'

/** A link as a visit needs it. */
export interface KnownLink extends Target, TargetRow {
  /**
   * Whether only owners, recipients and admins may follow it. Stored, because every visit asks.
   */
  isSecure: boolean
}

/** Whom a link is read for: a user named by the proxy, or anybody. */
export type VisitLevel = Extract<Level, 'trusted' | 'strangers'>

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
  db: Database
  maxLinks: number
  /**
   * By `/slug`, the path of a visit: cutting the slug out would make a new string. The first was
   * read longest ago: a link that is visited is read again every 30 s.
   */
  entries: Map<string, Entry>
  /** Slugs without a link. Kept apart, so that made-up slugs push no link out of memory. */
  misses: Map<string, ReadAt>
  /** What is being read, by level and slug: trusted visitors don't wait behind strangers. */
  reading: Map<string, Promise<KnownLink | undefined>>
  /** Entries from before the last reconnect are outdated: notices may have been missed. */
  reconnects: number
}

const MAX_LINKS = 10_000
/** Every change is announced; this bounds the harm of a lost notice. */
const FRESH_MS = 30_000
/** How long it is remembered that a slug has no link. It only limits the load of a flood. */
const MISS_FRESH_MS = 1_000
/** How long a visit waits for the database when an outdated link is in memory. */
const MAX_WAIT_MS = 250
/** How long outdated links are given without asking the database, after it failed. */
const PAUSE_MS = 1_000

/** Opens the cache: changes by any instance reach it by NOTIFY. */
export async function openTargetCache(db: Database, metrics: Metrics, maxLinks = MAX_LINKS) {
  const entries = new Map<string, Entry>()
  const misses = new Map<string, ReadAt>()
  const memory: Memory = { db, maxLinks, entries, misses, reading: new Map(), reconnects: 0 }
  let failedAt = -Infinity

  metrics.gauge('gatehouse_links_cached', 'Links in memory.', () => [[{}, entries.size]])
  const { fromMemory, fromDatabase, fromOutdated } = countLookups(metrics)

  // A notice without a slug means that the connection is new.
  await db.listen('links_changed', (slug) => {
    if (slug === undefined) memory.reconnects++
    else forget(memory, slug)
  })

  /** The link of a path (`/slug`) if it is in memory and up to date. */
  function fresh(path: string, now: number): KnownLink | undefined {
    const entry = entries.get(path)
    if (entry === undefined || !isFresh(memory, entry, now, FRESH_MS)) return undefined
    fromMemory()
    return entry.link
  }

  return {
    fresh,
    /** Drops what is in memory about a slug, which has just changed. */
    forget: (slug: string) => forget(memory, slug),

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

function countLookups(metrics: Metrics) {
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
  reading.delete(`trusted ${slug}`)
  reading.delete(`strangers ${slug}`)
}

function isFresh({ reconnects }: Memory, read: ReadAt, now: number, forMs: number): boolean {
  return read.reconnects === reconnects && isWithin(forMs, read.at, now)
}

function load(memory: Memory, slug: string, now: number, level: VisitLevel) {
  const { db, maxLinks, entries, misses, reading, reconnects } = memory
  const key = `${level} ${slug}`
  const running = reading.get(key)
  if (running !== undefined) return running
  const asked = { at: now, reconnects }
  const started = q.findTarget(db.at(level), { slug }).then((row) => {
    const link = row && { ...prepareTarget(row), isSecure: row.visibility === 'secure' }
    if (reading.get(key) !== started) return link
    reading.delete(key)
    entries.delete(`/${slug}`)
    misses.delete(slug)
    if (link === undefined) keep(misses, slug, asked, maxLinks)
    else keep(entries, `/${slug}`, { ...asked, link }, maxLinks)
    return link
  })
  reading.set(key, started)
  started.catch(() => {
    if (reading.get(key) === started) reading.delete(key)
  })
  return started
}

/** Adds a value, in place of the oldest one when there are too many. */
function keep<T>(kept: Map<string, T>, key: string, value: T, max: number): void {
  kept.set(key, value)
  const [oldest = key] = kept.keys()
  if (kept.size > max) kept.delete(oldest)
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
