import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../../../db/client.ts'
import type { Level } from '../../../../db/levels.ts'
import type { Target as TargetRow } from '../../../../db/links/visits/visits.ts'
import { createBoundedMap, type BoundedMap } from '../../../../kernel/bounded-map.ts'
import { Unavailable } from '../../../../kernel/fault.ts'
import type { Metrics } from '../../../../kernel/metrics.ts'
import { MAX_NAMESAKES } from '../../names/aliases/names.ts'
import { foldName } from '../../names/links/slug.ts'
import { prepareTarget, type Target } from '../../names/links/target.ts'
import { createTallies, type OwnVisits, type Tally } from './tallies.ts'
import { createTargetReads, type ReadTarget, type ReadTargets } from './target-reads.ts'

/** A link as a visit needs it. */
export interface KnownLink extends Target, TargetRow {
  /**
   * Whether only owners, recipients and admins may follow it. Stored, because every visit asks.
   */
  isSecure: boolean
  /** Of a link with a limit of visits. */
  tally: Tally | undefined
}

/** The link that has a name; if none has it, links with a name that differs in dashes only. */
export interface Found {
  link: KnownLink | undefined
  namesakes: readonly KnownLink[]
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

/** Names that differ in dashes only. */
interface Names extends ReadAt {
  /** The slug of each name's link. */
  slugs: ReadonlyMap<string, string>
}

/** What the cache has in memory. */
interface Memory {
  /**
   * By `/slug`, the path of a visit: cutting the slug out would make a new string. Links that are
   * visited are read again every 15 s, so the oldest one is one that nobody visits.
   */
  entries: BoundedMap<Entry>
  /** Names that visits asked for and that are not slugs, by what they are without dashes. */
  names: BoundedMap<Names>
  /**
   * Names without a link, without dashes. Kept apart, so that made-up names push no link out of
   * memory.
   */
  misses: BoundedMap<ReadAt>
  read: Readonly<Record<Reader, ReadTargets>>
  /** What is being read, by the name without dashes, then by reader and name. */
  reading: Map<string, Map<string, Promise<Found>>>
  /** Entries from before the last reconnect are outdated: notices may have been missed. */
  reconnects: number
}

/** Bytes of links in memory: 3,800 of the longest, and 60,000 with addresses of 100 characters. */
const MAX_BYTES = 32 * 2 ** 20
/** What a link takes beside its texts, and what a name takes: measured. */
const LINK_BYTES = 450
const MISS_BYTES = 150
/** Bytes of names without a link, and of names that are not slugs: some 10,000 each. */
const MAX_MISS_BYTES = 2 * 2 ** 20
const MAX_NAME_BYTES = 2 * 2 ** 20
/** Names that wait to be read: of visits as many as statements of that level may wait. */
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
/** How long it is remembered that a name has no link. It only limits the load of a flood. */
const MISS_FRESH_MS = 1_000
/** How long a visit waits for the database when an outdated link is in memory. */
const MAX_WAIT_MS = 250
/** How long outdated links are given without asking the database, after it failed. */
const PAUSE_MS = 1_000

/** What a snapshot has was read by an earlier process. */
const BEFORE_START: ReadAt = { at: -Infinity, reconnects: -1 }

/** Opens the cache: changes by any instance reach it by NOTIFY. */
export async function openTargetCache(
  db: Database,
  metrics: Metrics,
  own: OwnVisits,
  maxBytes = MAX_BYTES,
) {
  const entries = createBoundedMap<Entry>(maxBytes, linkBytes)
  const misses = createBoundedMap<ReadAt>(MAX_MISS_BYTES, (name) => MISS_BYTES + name.length)
  const names = createBoundedMap<Names>(MAX_NAME_BYTES, nameBytes)
  const visits = { own, tallyOf: createTallies() }
  const read = {
    trusted: createTargetReads(db.at('trusted'), visits, MAX_WAITING.trusted),
    strangers: createTargetReads(db.at('strangers'), visits, MAX_WAITING.strangers),
    renewals: createTargetReads(db.at('strangers'), visits, MAX_WAITING.renewals),
  }
  const memory: Memory = { entries, names, misses, read, reading: new Map(), reconnects: 0 }
  let failedAt = -Infinity

  const { fromMemory, fromDatabase, fromOutdated } = measure(memory, metrics)

  // A notice without a slug means that the connection is new.
  await db.listen('links_changed', (name) => {
    if (name === undefined) memory.reconnects++
    else forget(memory, name)
  })

  /** The link of a path (`/slug`) if it is in memory and up to date. */
  function fresh(path: string, now: number): KnownLink | undefined {
    const entry = entries.get(path)
    if (entry === undefined || !isFresh(memory, entry, now, FRESH_MS)) return undefined
    if (!isWithin(RENEW_MS, entry.at, now)) renew(memory, entry.link.slug, now)
    fromMemory()
    return entry.link
  }

  return {
    fresh,
    /** Drops what is in memory about a name, whose link has just changed. */
    forget: (name: string) => forget(memory, name),

    /** Takes links of a snapshot, the most used first: outdated ones, for lack of a database. */
    restore(rows: readonly TargetRow[]) {
      for (const row of rows.toReversed()) {
        const link = toKnownLink({ ...row, tally: undefined })
        entries.set(`/${row.slug}`, { ...BEFORE_START, link })
      }
    },

    /**
     * What a name stands for, from memory or the database. If the database is out of reach, gives
     * outdated links, but never a secure one; else throws `Unavailable`.
     */
    async find(name: string, now: number, level: VisitLevel): Promise<Found> {
      const known = fresh(`/${name}`, now)
      if (known !== undefined) return exactly(known)
      const miss = misses.get(foldName(name))
      if (miss !== undefined && isFresh(memory, miss, now, MISS_FRESH_MS)) {
        fromMemory()
        return { link: undefined, namesakes: [] }
      }
      const recalled = recall(memory, name)
      if (recalled?.reads.every((read) => isFresh(memory, read, now, FRESH_MS)) === true) {
        if (!recalled.reads.every(({ at }) => isWithin(RENEW_MS, at, now))) {
          renew(memory, name, now)
        }
        fromMemory()
        return recalled.found
      }
      const outdated = recalled?.hasSecure === false ? recalled.found : undefined
      if (outdated !== undefined && isWithin(PAUSE_MS, failedAt, now)) {
        fromOutdated()
        return outdated
      }
      fromDatabase()
      if (outdated === undefined) return load(memory, name, now, level)
      try {
        return await Promise.race([load(memory, name, now, level), lateAnswer()])
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        failedAt = now
        fromOutdated()
        return outdated
      }
    },
  }
}

/** Whether visits of a link have ended. To be asked without a wait before a visit is counted. */
export function hasEnded({ ends_at, max_visits, tally }: KnownLink, now: number): boolean {
  if (ends_at !== null && now >= ends_at) return true
  return max_visits !== null && tally !== undefined && tally.visits >= max_visits
}

/** The url is percent-encoded and the others are ASCII: a byte a character. */
function linkBytes(path: string, { link: { id, slug, url } }: Entry): number {
  return LINK_BYTES + path.length + id.length + slug.length + url.length
}

function nameBytes(folded: string, { slugs }: Names): number {
  let bytes = MISS_BYTES + folded.length
  for (const [name, slug] of slugs) bytes += MISS_BYTES + name.length + slug.length
  return bytes
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

function forget({ entries, names, misses, reading }: Memory, name: string): void {
  const folded = foldName(name)
  entries.delete(`/${name}`)
  names.delete(folded)
  misses.delete(folded)
  // What is being read may be the old version: it is given to those who wait, but not stored.
  reading.delete(folded)
}

function isFresh({ reconnects }: Memory, read: ReadAt, now: number, forMs: number): boolean {
  return read.reconnects === reconnects && isWithin(forMs, read.at, now)
}

/** Reads a name again, for later visits: they do it if this fails. */
function renew(memory: Memory, name: string, now: number): void {
  load(memory, name, now, 'renewals').catch(() => undefined)
}

function exactly(link: KnownLink): Found {
  return { link, namesakes: [] }
}

/** What a name stands for, if all of these links are known. */
function foundAmong(
  name: string,
  slugs: ReadonlyMap<string, string>,
  linkOf: (slug: string) => KnownLink | undefined,
): Found | undefined {
  const slug = slugs.get(name)
  const link = slug === undefined ? undefined : linkOf(slug)
  if (slug !== undefined) return link && exactly(link)
  const namesakes = [...new Set(slugs.values())].map(linkOf)
  return namesakes.every((known) => known !== undefined) ? { link, namesakes } : undefined
}

/** What a name stood for when it was read last, and when that was, if it is in memory. */
function recall({ entries, names }: Memory, name: string) {
  const folded = names.get(foldName(name))
  const own = entries.get(`/${name}`)
  // If there may be more names than these, another link may have this one.
  const isCut = folded !== undefined && folded.slugs.size >= MAX_NAMESAKES
  const slugs = own !== undefined || isCut ? new Map([[name, name]]) : folded?.slugs
  const found = slugs && foundAmong(name, slugs, (slug) => entries.get(`/${slug}`)?.link)
  if (found === undefined) return undefined
  const links = found.link === undefined ? found.namesakes : [found.link]
  const stored = links.map(({ slug }) => entries.get(`/${slug}`)).filter((at) => at !== undefined)
  const reads: readonly ReadAt[] = own === undefined && folded ? [folded, ...stored] : stored
  return { found, reads, hasSecure: links.some(({ isSecure }) => isSecure) }
}

function load(memory: Memory, name: string, now: number, reader: Reader): Promise<Found> {
  const { reading, reconnects } = memory
  const folded = foldName(name)
  const running = reading.getOrInsertComputed(folded, () => new Map())
  const key = `${reader} ${name}`
  const started =
    running.get(key) ??
    memory.read[reader](name)
      .then((rows) => {
        const isForgotten = reading.get(folded) !== running
        return take(isForgotten ? undefined : memory, name, rows, { at: now, reconnects })
      })
      .finally(() => {
        running.delete(key)
        if (running.size === 0 && reading.get(folded) === running) reading.delete(folded)
      })
  running.set(key, started)
  return started
}

function toKnownLink(row: TargetRow & Pick<KnownLink, 'tally'>): KnownLink {
  return { ...prepareTarget(row), isSecure: row.visibility === 'secure' }
}

/** Makes links of rows, stores them unless they are forgotten already, and gives what was found. */
function take(
  memory: Memory | undefined,
  name: string,
  rows: readonly ReadTarget[],
  read: ReadAt,
): Found {
  const slugs = new Map(rows.map((row) => [row.name, row.slug]))
  const links = new Map(
    rows.map((row) => {
      const { asked: _asked, name: _name, clicks: _clicks, written: _written, ...link } = row
      return [link.slug, toKnownLink(link)] as const
    }),
  )
  if (memory !== undefined) store(memory, name, { ...read, slugs }, links)
  const found = foundAmong(name, slugs, (slug) => links.get(slug))
  return found ?? { link: undefined, namesakes: [] }
}

function store(
  { entries, names, misses }: Memory,
  name: string,
  read: Names,
  links: ReadonlyMap<string, KnownLink>,
): void {
  const { at, reconnects, slugs } = read
  const folded = foldName(name)
  entries.delete(`/${name}`)
  misses.delete(folded)
  if (slugs.size === 0) misses.set(folded, { at, reconnects })
  for (const [slug, link] of links) entries.set(`/${slug}`, { at, reconnects, link })
  // Most names are the slugs of their links, and are found by these.
  const isPlain = slugs.size === 1 && slugs.get(name) === name
  const wasAsked = names.get(folded) !== undefined
  names.delete(folded)
  if (slugs.size > 0 && (!isPlain || wasAsked)) names.set(folded, read)
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
