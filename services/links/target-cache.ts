import type { Database } from '../../db/client.ts'
import type { Visibility } from '../../db/links/links.ts'
import type { Level } from '../../db/pool.ts'
import { visitQueries as q } from '../../db/links/visits.ts'
import { Unavailable } from '../../kernel/fault.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { prepareTarget, type Target } from './target.ts'

/** A link as a visit needs it. */
export interface KnownLink extends Target {
  readonly id: string
  readonly slug: string
  readonly visibility: Visibility
  /** Whether only owners, recipients and admins may follow it. Stored, because every visit asks. */
  readonly isSecure: boolean
}

/** Whom a link is read for: a user named by the proxy, or anybody. */
export type VisitLevel = Extract<Level, 'trusted' | 'strangers'>

/** Links in memory, so that a visit asks no database. */
export interface TargetCache {
  /** The link of a path (`/slug`) if it is in memory and up to date. */
  fresh(path: string, now: number): KnownLink | undefined
  /**
   * The link with a slug, from memory or the database. If the database is out of reach, gives an
   * outdated link, but never a secure one; else throws `Unavailable`.
   */
  find(slug: string, now: number, level: VisitLevel): Promise<KnownLink | undefined>
  /** Drops what is in memory about a slug, which has just changed. */
  forget(slug: string): void
}

/** When something was read. */
interface ReadAt {
  readonly at: number
  /** How often the connection for notices had been replaced by then. */
  readonly reconnects: number
}

interface Entry extends ReadAt {
  readonly link: KnownLink
  /** Whether it was used since it was stored or last spared. */
  used: boolean
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
export async function openTargetCache(
  db: Database,
  metrics: Metrics,
  maxLinks = MAX_LINKS,
): Promise<TargetCache> {
  /**
   * By `/slug`, the path of a visit: cutting the slug out would make a new string. The oldest
   * first.
   */
  const entries = new Map<string, Entry>()
  /** Slugs without a link. Kept apart, so that made-up slugs push no link out of memory. */
  const misses = new Map<string, ReadAt>()
  /**
   * What is being read. Trusted visitors have their own, so that they don't wait behind strangers.
   */
  const reading: Readonly<Record<VisitLevel, Map<string, Promise<KnownLink | undefined>>>> = {
    trusted: new Map(),
    strangers: new Map(),
  }
  /** Entries from before the last reconnect are outdated: notices may have been missed. */
  let reconnects = 0
  let pausedUntil = 0

  metrics.gauge('gatehouse_links_cached', 'Links in memory.', () => [[{}, entries.size]])
  const lookups = metrics.counter('gatehouse_links_lookups', 'Links looked up, by where from.')
  const fromMemory = lookups.series({ source: 'memory' })
  const fromDatabase = lookups.series({ source: 'database' })
  const fromOutdated = lookups.series({ source: 'stale' })

  function forget(slug: string): void {
    entries.delete(`/${slug}`)
    misses.delete(slug)
    // What is being read may be the old version: it is given to those who wait, but not stored.
    reading.trusted.delete(slug)
    reading.strangers.delete(slug)
  }

  function isFresh(read: ReadAt, now: number, forMs: number): boolean {
    // The clock may have been set back.
    return read.reconnects === reconnects && Math.abs(now - read.at) <= forMs
  }

  function keep(slug: string, entry: Entry): void {
    entries.delete(`/${slug}`)
    entries.set(`/${slug}`, entry)
    if (entries.size > maxLinks) dropOne()
  }

  /**
   * Drops the oldest entry that was not used since it was last spared: a mark costs a visit less
   * than a move.
   */
  function dropOne(): void {
    for (const [path, entry] of entries) {
      entries.delete(path)
      if (!entry.used) return
      entry.used = false
      entries.set(path, entry)
    }
  }

  function keepMiss(slug: string, read: ReadAt): void {
    entries.delete(`/${slug}`)
    misses.delete(slug)
    misses.set(slug, read)
    if (misses.size <= maxLinks) return
    const [oldest = slug] = misses.keys()
    misses.delete(oldest)
  }

  function load(slug: string, now: number, level: VisitLevel): Promise<KnownLink | undefined> {
    const reads = reading[level]
    const running = reads.get(slug)
    if (running !== undefined) return running
    const asked = { at: now, reconnects }
    const started = q.findTarget(db.at(level), { slug }).then((row) => {
      const link = row && {
        ...row,
        ...prepareTarget(row.url, row.append_path),
        isSecure: row.visibility === 'secure',
      }
      if (reads.get(slug) !== started) return link
      reads.delete(slug)
      if (link === undefined) keepMiss(slug, asked)
      else keep(slug, { ...asked, link, used: true })
      return link
    })
    reads.set(slug, started)
    started.catch(() => {
      if (reads.get(slug) === started) reads.delete(slug)
    })
    return started
  }

  // A notice without a slug means that the connection is new.
  await db.listen('links_changed', (slug) => {
    if (slug === undefined) reconnects++
    else forget(slug)
  })

  function fresh(path: string, now: number): KnownLink | undefined {
    const entry = entries.get(path)
    if (entry === undefined || !isFresh(entry, now, FRESH_MS)) return undefined
    entry.used = true
    fromMemory()
    return entry.link
  }

  return {
    fresh,
    forget,
    async find(slug, now, level) {
      const known = fresh(`/${slug}`, now)
      if (known !== undefined) return known
      const miss = misses.get(slug)
      if (miss !== undefined && isFresh(miss, now, MISS_FRESH_MS)) {
        fromMemory()
        return undefined
      }
      const outdated = entries.get(`/${slug}`)?.link
      const mayBeGiven = outdated !== undefined && !outdated.isSecure
      if (mayBeGiven && now < pausedUntil && now >= pausedUntil - PAUSE_MS) {
        fromOutdated()
        return outdated
      }
      fromDatabase()
      if (!mayBeGiven) return load(slug, now, level)
      try {
        return await withMaxWait(load(slug, now, level))
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        pausedUntil = now + PAUSE_MS
        fromOutdated()
        return outdated
      }
    },
  }
}

/** Rejects with `Unavailable` when the database takes too long. */
async function withMaxWait<T>(pending: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unavailable('the database is slow')), MAX_WAIT_MS)
  })
  try {
    return await Promise.race([pending, late])
  } finally {
    clearTimeout(timer)
  }
}
