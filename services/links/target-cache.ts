import type { Database } from '../../db/client.ts'
import type { Visibility } from '../../db/links/rows.ts'
import { findTarget } from '../../db/links/visits.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { prepareTarget, type Target } from './target.ts'

/** A link as a visit needs it. */
export interface KnownLink extends Target {
  readonly id: string
  readonly slug: string
  readonly visibility: Visibility
}

/** Links in memory, so that a visit asks no database. */
export interface TargetCache {
  /** A link that is known to be as it is now; undefined when it must be read. */
  fresh(slug: string, now: number): KnownLink | undefined
  /**
   * Reads a link. Throws `Unavailable` when the database is out of reach and the link is not known
   * from before; a secure one is never taken from before.
   */
  read(slug: string, now: number): Promise<KnownLink | undefined>
  /** Drops what is known of a slug: it has just changed. */
  forget(slug: string): void
  readonly size: number
}

interface Entry {
  readonly link: KnownLink
  /** When it was asked for. */
  readonly at: number
}

const MOST = 10_000
/** Every change is announced; this is the safety net under a notice that got lost. */
const FRESH_MS = 30_000
/** How long a visit waits for the database when the link is known from before. */
const PATIENCE_MS = 250
/** After a failure the links known from before are given at once for this long. */
const PAUSE_MS = 1_000

/** Opens the cache: changes by any instance reach it by NOTIFY. */
export async function openTargetCache(db: Database): Promise<TargetCache> {
  /** In the order of their use, the latest last. */
  const entries = new Map<string, Entry>()
  const reading = new Map<string, Promise<KnownLink | undefined>>()
  /** Entries from before this may have missed a notice. */
  let suspectUntil = 0
  let pausedUntil = 0

  function forget(slug: string): void {
    entries.delete(slug)
    // What is being read may be the old version: it is given, but not kept.
    reading.delete(slug)
  }

  function keep(slug: string, entry: Entry): void {
    entries.delete(slug)
    entries.set(slug, entry)
    if (entries.size <= MOST) return
    for (const oldest of entries.keys()) return void entries.delete(oldest)
  }

  function load(slug: string, now: number): Promise<KnownLink | undefined> {
    const running = reading.get(slug)
    if (running !== undefined) return running
    const started = findTarget(db, slug).then((row) => {
      const link = row && { ...row, ...prepareTarget(row.url, row.append_path) }
      if (reading.get(slug) !== started) return link
      reading.delete(slug)
      if (link === undefined) entries.delete(slug)
      else keep(slug, { link, at: now })
      return link
    })
    reading.set(slug, started)
    started.catch(() => reading.get(slug) === started && reading.delete(slug))
    return started
  }

  // A notice without a slug: the connection is new, so any notice may have been missed.
  await db.listen('links_changed', (slug) => {
    if (slug === undefined) suspectUntil = Date.now()
    else forget(slug)
  })

  return {
    fresh(slug, now) {
      const entry = entries.get(slug)
      if (entry === undefined || entry.at <= suspectUntil || now - entry.at > FRESH_MS) {
        return undefined
      }
      keep(slug, entry)
      return entry.link
    },
    async read(slug, now) {
      const before = entries.get(slug)?.link
      if (before === undefined || before.visibility === 'secure') return load(slug, now)
      if (now < pausedUntil) return before
      try {
        return await withPatience(load(slug, now))
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        pausedUntil = now + PAUSE_MS
        return before
      }
    },
    forget,
    get size() {
      return entries.size
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
