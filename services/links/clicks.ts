import type { Database } from '../../db/client.ts'
import { visitQueries as q, type ClickKind, type DayClicks } from '../../db/links/visits.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { startNumberedBatches } from '../../kernel/numbered-batches.ts'
import type { Clock } from '../../kernel/time.ts'
import type { RandomBytes } from '../../kernel/tokens.ts'

/** Clicks on their way into the database. */
export interface Clicks {
  count(link: string, kind: ClickKind, at: Date): void
  /** Writes the rest, and no more afterwards. */
  close(): Promise<void>
}

export interface ClicksOptions {
  readonly db: Database
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  readonly metrics: Metrics
}

type LinkClicks = DayClicks & { readonly link_id: string }

/** Clicks of one kind on one day (UTC, in days since 1970), by link. */
interface Tally {
  readonly kind: ClickKind
  readonly day: number
  readonly links: Map<string, { clicks: number }>
}

const DAY_MS = 86_400_000

/** How many days the pages show clicks of, today included. */
const CLICK_DAYS = 30

/** Counts in memory and writes once every second: a visit waits for no database. */
export async function openClicks(options: ClicksOptions): Promise<Clicks> {
  const { db, clock, random, log, metrics } = options
  await q.forgetClickWriters(db, { before: new Date(clock.now().getTime() - DAY_MS) })
  let waiting: Tally[] = []

  const batches = startNumberedBatches<readonly LinkClicks[]>({
    clock,
    random,
    take() {
      if (waiting.length === 0) return undefined
      const taken = waiting
      waiting = []
      return taken.flatMap(rowsOf)
    },
    save: (clicks, number) => q.saveClicks(db, { clicks, ...number, at: clock.now() }),
    reports: {
      fails: (error) => log.warn('clicks not written, kept for later', { error: messageOf(error) }),
      works: () => log.info('clicks are written again'),
    },
  })

  function tallyOf(kind: ClickKind, day: number): Tally {
    for (const tally of waiting) if (tally.kind === kind && tally.day === day) return tally
    const tally: Tally = { kind, day, links: new Map() }
    waiting.push(tally)
    return tally
  }

  function unwritten(): number {
    const counted = waiting.flatMap(({ links }) => [...links.values()])
    const all = [...counted, ...(batches.unacknowledged ?? [])]
    return all.reduce((sum, { clicks }) => sum + clicks, 0)
  }

  metrics.gauge('gatehouse_links_clicks_waiting', 'Clicks not in the database yet.', () => [
    [{}, unwritten()],
  ])
  return {
    count(link, kind, at) {
      const { links } = tallyOf(kind, Math.floor(at.getTime() / DAY_MS))
      const counted = links.get(link)
      if (counted === undefined) links.set(link, { clicks: 1 })
      else counted.clicks++
    },
    async close() {
      await batches.close()
      const lost = unwritten()
      if (lost > 0) log.warn('clicks lost: the database is out of reach', { clicks: lost })
    },
  }
}

/** The first of the days that pages show clicks of (UTC), such as `2026-01-31`. */
export function firstClickDay(now: Date): string {
  return dayText(now.getTime() - (CLICK_DAYS - 1) * DAY_MS)
}

/** Those days, oldest first. */
export function clickDays(now: Date): readonly string[] {
  const first = now.getTime() - (CLICK_DAYS - 1) * DAY_MS
  return Array.from({ length: CLICK_DAYS }, (_, at) => dayText(first + at * DAY_MS))
}

function rowsOf({ kind, day, links }: Tally): readonly LinkClicks[] {
  const date = dayText(day * DAY_MS)
  return [...links].map(([link_id, { clicks }]) => ({ link_id, kind, day: date, clicks }))
}

function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
