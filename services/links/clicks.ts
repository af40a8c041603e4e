import type { Database } from '../../db/client.ts'
import type { ClickKind } from '../../db/links/rows.ts'
import { forgetClickWriters, saveClicks, type ClickBatch } from '../../db/links/visits.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { repeat } from '../../kernel/repeat.ts'
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

/** Clicks of one kind on one day (UTC, in days since 1970), by link. */
interface Tally {
  readonly kind: ClickKind
  readonly day: number
  readonly links: Map<string, { clicks: number }>
}

const FLUSH_MS = 1_000
const DAY_MS = 86_400_000

/** Counts in memory and writes once a second: a visit waits for no database. */
export async function openClicks(options: ClicksOptions): Promise<Clicks> {
  const { db, clock, random, log, metrics } = options
  const writer = random(16).toString('hex')
  await forgetClickWriters(db, new Date(clock.now().getTime() - DAY_MS))
  let waiting: Tally[] = []
  /** What is being written. After a lost answer it may be written: it is sent again as it is. */
  let sent: ClickBatch | undefined
  let batches = 0

  function count(link: string, kind: ClickKind, at: Date): void {
    const { links } = tallyOf(kind, Math.floor(at.getTime() / DAY_MS))
    const counted = links.get(link)
    if (counted === undefined) links.set(link, { clicks: 1 })
    else counted.clicks++
  }

  function tallyOf(kind: ClickKind, day: number): Tally {
    for (const tally of waiting) if (tally.kind === kind && tally.day === day) return tally
    const tally: Tally = { kind, day, links: new Map() }
    waiting.push(tally)
    return tally
  }

  async function send(): Promise<void> {
    if (sent === undefined) return
    await saveClicks(db, sent, clock.now())
    sent = undefined
  }

  async function write(): Promise<void> {
    await send()
    if (waiting.length === 0) return
    sent = { writer, number: ++batches, clicks: waiting.flatMap(rowsOf) }
    waiting = []
    await send()
  }

  function unwritten(): number {
    const counted = waiting.flatMap(({ links }) => [...links.values()])
    return [...counted, ...(sent?.clicks ?? [])].reduce((sum, { clicks }) => sum + clicks, 0)
  }

  metrics.gauge('gatehouse_links_clicks_waiting', 'Clicks not in the database yet.', () => [
    [{}, unwritten()],
  ])
  const flushes = repeat(clock, FLUSH_MS, write, {
    fails: (error) => log.warn('clicks not written, kept for later', { error: messageOf(error) }),
    works: () => log.info('clicks are written again'),
  })
  return {
    count,
    async close() {
      await flushes.now()
      await flushes.stop()
      const lost = unwritten()
      if (lost > 0) log.warn('clicks lost: the database is out of reach', { clicks: lost })
    },
  }
}

function rowsOf({ kind, day, links }: Tally): ClickBatch['clicks'] {
  const date = new Date(day * DAY_MS).toISOString().slice(0, 10)
  return [...links].map(([link_id, { clicks }]) => ({ link_id, kind, day: date, clicks }))
}

/** How many days pages tell clicks of, today included. */
export const CLICK_DAYS = 30

/** The first of the days that pages tell clicks of (UTC), such as `2026-01-31`. */
export function firstClickDay(now: Date): string {
  return dayText(now.getTime() - (CLICK_DAYS - 1) * DAY_MS)
}

/** Those days, oldest first. */
export function clickDays(now: Date): readonly string[] {
  const first = now.getTime() - (CLICK_DAYS - 1) * DAY_MS
  return Array.from({ length: CLICK_DAYS }, (_, at) => dayText(first + at * DAY_MS))
}

function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
