import { trimBoth } from '../../../../kernel/text.ts'
import type { Database } from '../../../../db/client.ts'
import {
  eventQueries as q,
  type EventBeginning,
  type EventSummary,
} from '../../../../db/hooks/log/events.ts'
import { meaningOf } from './meaning.ts'

/** An event as a row of a list on a page. */
export interface EventRow extends EventSummary {
  /** Null when the payload is not text. */
  preview: Preview | null
}

/** What a row says of its payload. */
export interface Preview {
  /** A method other than POST and its query, then what the payload tells. */
  parts: readonly string[]
  /** The text that was searched for, where the row shows it. */
  match?: string
}

/** Bytes that are read for the beginning of a payload: a line of JSON may begin with white space. */
const BEGINNING_BYTES = 300
const BEGINNING_CHARACTERS = 120
/** Bytes that are read for what a payload means: most of GitHub's payloads are not longer. */
const MEANING_BYTES = 16 * 1024
/** A match further behind is not shown: it would cost a page of long payloads too much. */
const MATCH_BYTES = 64 * 1024
/** What is read before a match, and in all. */
const BEFORE_BYTES = 60
const AROUND_BYTES = 400

/** Adds to each event the beginning of its payload on one line; null when it is not text. */
export async function withBeginnings(
  db: Database,
  events: readonly EventSummary[],
): Promise<readonly (EventSummary & { preview: string | null })[]> {
  const byId = await readBeginnings(db, events, BEGINNING_BYTES)
  return events.map((event) => {
    // Retention may just have removed the event.
    const beginning = byId.get(event.id)
    return { ...event, preview: beginning === undefined ? '' : previewOf(beginning) }
  })
}

/** Adds to each event its preview; `text` is what was searched for. */
export async function withPreviews(
  db: Database,
  events: readonly EventSummary[],
  text: Buffer | null = null,
): Promise<readonly EventRow[]> {
  const byId = await readBeginnings(db, events, MEANING_BYTES)
  const matches = text === null ? new Map<number, Preview>() : await readMatches(db, events, text)
  return events.map((event) => {
    const start = byId.get(event.id)
    const whole = start === undefined ? { parts: [] } : describe(start)
    return { ...event, preview: whole && (matches.get(event.id) ?? whole) }
  })
}

async function readBeginnings(db: Database, events: readonly EventSummary[], bytes: number) {
  if (events.length === 0) return new Map<number, EventBeginning>()
  const ids = events.map(({ id }) => id)
  const beginnings = await q.listBeginnings(db, { ids, bytes })
  return new Map(beginnings.map((beginning) => [beginning.id, beginning]))
}

/** The places in the payloads where the text was found. */
async function readMatches(db: Database, events: readonly EventSummary[], text: Buffer) {
  const ids = events.map(({ id }) => id)
  const bounds = { searched: MATCH_BYTES, before: BEFORE_BYTES, around: AROUND_BYTES }
  const found = await q.listMatches(db, { ids, text, ...bounds })
  return new Map(
    found.map(({ id, start, around }) => {
      // A character may be cut at both ends.
      const words = trimBoth(new TextDecoder().decode(around), /\uFFFD/)
      const line = `${start > 1 ? '…' : ''}${onOneLine(words)}`
      return [id, { parts: [shortened(line, false)], match: onOneLine(String(text)) }] as const
    }),
  )
}

/** What the beginning of a payload tells; null when it is not text. */
function describe(start: EventBeginning): Preview | null {
  const isCut = start.payload.length < start.payload_size
  const text = readText(start.payload, isCut)
  const meaning = text === null ? [] : meaningOf(text, isCut)
  if (meaning.length > 0) return { parts: [requestOf(start), ...meaning].filter(Boolean) }
  const line = previewOf(start)
  return line === null ? null : { parts: [line].filter(Boolean) }
}

/** The beginning of a payload on one line, after its request; null when it is not text. */
export function previewOf(event: Omit<EventBeginning, 'id'>): string | null {
  const payload = event.payload.subarray(0, BEGINNING_BYTES)
  const isCut = payload.length < event.payload_size
  const text = readText(payload, isCut)
  if (text === null) return null
  const line = withoutBraces(onOneLine(text), isCut)
  return shortened(`${requestOf(event)} ${line}`.trim(), isCut)
}

/** The method and the query, where the method is not POST. */
function requestOf({ method, query }: Pick<EventBeginning, 'method' | 'query'>): string {
  const isPost = method === null || method === 'POST'
  return isPost ? '' : `${method}${query === null ? '' : ` ?${query}`}`
}

function onOneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
}

/** By characters, so that no character is cut in two. */
function shortened(line: string, isCut: boolean): string {
  const shown = SHOWN.exec(line)?.[0] ?? ''
  return isCut || shown.length < line.length ? `${shown.trimEnd()}…` : shown
}

const SHOWN = new RegExp(`^.{0,${BEGINNING_CHARACTERS}}`, 'u')

/** The bytes as text without a character that is cut at their end; null when they are not text. */
function readText(start: Buffer, isCut: boolean): string | null {
  if (start.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: isCut })
  } catch {
    // TypeError: not UTF-8.
    return null
  }
}

/** A JSON object's members without the braces around them, which tell nothing. */
function withoutBraces(line: string, isCut: boolean): string {
  if (!/^\{ ?"/.test(line)) return line
  const members = line.slice(1)
  return (isCut ? members : members.replace(/\}$/, '')).trim()
}
