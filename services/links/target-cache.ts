import type { Database } from '../../db/client.ts'
import type { Visibility } from '../../db/links/rows.ts'
import type { Level } from '../../db/pool.ts'
import { findTarget } from '../../db/links/visits.ts'
import { Unavailable } from '../../kernel/fault.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { prepareTarget, type Target } from './target.ts'

/** A link as a visit needs it. */
export interface KnownLink extends Target {
  readonly id: string
  readonly slug: string
  readonly visibility: Visibility
  /** Whether only some may follow it: said here, because every visit asks. */
  readonly isSecure: boolean
}

/** Who a link is read for: somebody whom the proxy names, or anybody. */
export type VisitLevel = Extract<Level, 'trusted' | 'strangers'>

/** Links in memory, so that a visit asks no database. */
export interface TargetCache {
  /** The link of a path (`/slug`) that is known to be as it is now; undefined when it must be read. */
  fresh(path: string, now: number): KnownLink | undefined
  /**
   * The link with a slug, read when it must be. Throws `Unavailable` when the database is out of reach
   * and the link is not known from before; a secure one is never taken from before.
   */
  find(slug: string, now: number, level: VisitLevel): Promise<KnownLink | undefined>
  /** Drops what is known of a slug: it has just changed. */
  forget(slug: string): void
}

/** When something was read. */
interface ReadAt {
  readonly at: number
  /** How often notices may have been missed by then. */
  readonly missed: number
}

interface Entry extends ReadAt {
  readonly link: KnownLink
  /** Used since it was put in, or since it was spared. */
  used: boolean
}

const MAX_LINKS = 10_000
/** Every change is announced; this is the safety net under a notice that got lost. */
const FRESH_MS = 30_000
/** A slug without a link is asked for by strangers: short, as nothing but the load of a flood depends on it. */
const MISS_FRESH_MS = 1_000
/** How long a visit waits for the database when the link is known from before. */
const PATIENCE_MS = 250
/** After a failure the links known from before are given at once for this long. */
const PAUSE_MS = 1_000

/** Opens the cache: changes by any instance reach it by NOTIFY. */
export async function openTargetCache(
  db: Database,
  metrics: Metrics,
  maxLinks = MAX_LINKS,
): Promise<TargetCache> {
  /** By `/slug`, as a visit brings it: a part of a text is a new text for a map. The oldest first. */
  const entries = new Map<string, Entry>()
  /** Slugs without a link. Apart, so that made-up slugs push no link out of memory. */
  const misses = new Map<string, ReadAt>()
  /** What is being read: for trusted visitors apart, who must not wait in the list of strangers. */
  const reading: Readonly<Record<VisitLevel, Map<string, Promise<KnownLink | undefined>>>> = {
    trusted: new Map(),
    strangers: new Map(),
  }
  /** How often notices may have been missed: entries from before the last time are to be read again. */
  let missed = 0
  let pausedUntil = 0

  metrics.gauge('gatehouse_links_cached', 'Links in memory.', () => [[{}, entries.size]])
  const lookups = metrics.counter('gatehouse_links_lookups', 'Links looked up, by where from.')
  const fromMemory = lookups.series({ source: 'memory' })
  const fromDatabase = lookups.series({ source: 'database' })
  const fromBefore = lookups.series({ source: 'stale' })

  function forget(slug: string): void {
    entries.delete(`/${slug}`)
    misses.delete(slug)
    // What is being read may be the old version: it is given, but not kept.
    reading.trusted.delete(slug)
    reading.strangers.delete(slug)
  }

  function isFresh(read: ReadAt, now: number, forMs: number): boolean {
    // The clock may have been set back.
    return read.missed === missed && Math.abs(now - read.at) <= forMs
  }

  function keep(slug: string, entry: Entry): void {
    entries.delete(`/${slug}`)
    entries.set(`/${slug}`, entry)
    if (entries.size > maxLinks) dropOne()
  }

  /** The oldest one that was not used since its last turn: a mark costs a visit less than a move. */
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
    const underWay = reading[level]
    const running = underWay.get(slug)
    if (running !== undefined) return running
    const asked = { at: now, missed }
    const started = findTarget(db.at(level), slug).then((row) => {
      const link = row && {
        ...row,
        ...prepareTarget(row.url, row.append_path),
        isSecure: row.visibility === 'secure',
      }
      if (underWay.get(slug) !== started) return link
      underWay.delete(slug)
      if (link === undefined) keepMiss(slug, asked)
      else keep(slug, { ...asked, link, used: true })
      return link
    })
    underWay.set(slug, started)
    started.catch(() => underWay.get(slug) === started && underWay.delete(slug))
    return started
  }

  // A notice without a slug: the connection is new, so any notice may have been missed.
  await db.listen('links_changed', (slug) => {
    if (slug === undefined) missed++
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
      const before = entries.get(`/${slug}`)?.link
      const mayBeStale = before !== undefined && !before.isSecure
      if (mayBeStale && now < pausedUntil && now >= pausedUntil - PAUSE_MS) {
        fromBefore()
        return before
      }
      fromDatabase()
      if (!mayBeStale) return load(slug, now, level)
      try {
        return await withPatience(load(slug, now, level))
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        pausedUntil = now + PAUSE_MS
        fromBefore()
        return before
      }
    },
  }
}

/** Rejects with `Unavailable` when the answer takes too long for somebody who could do without. */
async function withPatience<T>(pending: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Unavailable('the database is slow')), PATIENCE_MS)
  })
  try {
    return await Promise.race([pending, late])
  } finally {
    clearTimeout(timer)
  }
}
