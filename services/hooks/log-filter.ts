import type { EventFilter } from '../../db/hooks/events.ts'
import type { EventSummary } from '../../db/hooks/rows.ts'
import type { PayloadFilter } from '../../db/hooks/search.ts'
import { decodeCursor, encodeCursor } from '../../kernel/text.ts'

/** Which events are wanted, for the log, the tools and the relay alike; null asks for nothing. */
export interface Wanted extends Pick<EventFilter, 'provider' | 'event_type'> {
  readonly payload: PayloadFilter
}

/** The query of `/log` (hooks.md section 4) as text, and as the database takes it. */
export interface LogQuery {
  readonly provider: string
  readonly event_type: string
  readonly since: string
  readonly limit: number
  /** Text that the payload holds. */
  readonly text: string
  /** `path=value` of a member of the payload's JSON. */
  readonly json: string
  readonly filter: EventFilter
  readonly payload: PayloadFilter
}

/** Reads the query of `/log`; a bad `limit`, `cursor` or `since` gives the line that says so. */
export function readLogQuery(query: URLSearchParams): LogQuery | string {
  const wanted = readWanted(query)
  if (typeof wanted === 'string') return wanted
  const { provider, event_type, payload } = wanted
  const since = (query.get('since') ?? '').trim()
  const limitText = query.get('limit') ?? ''
  const limit = limitText === '' ? 50 : /^\d{1,3}$/.test(limitText) ? Number(limitText) : 0
  if (limit < 1 || limit > 200) return 'limit must be a whole number from 1 to 200.'

  const bound = readSince(since)
  if (bound === undefined)
    return 'since must be an event id or a time such as 2026-01-31T12:00:00Z.'
  // The refused deliveries have cursors of their own: `readRejectionCursor`.
  const cursorText = query.get('rejected') === '1' ? null : query.get('cursor')
  const before = cursorText === null || cursorText === '' ? null : readCursor(cursorText)
  if (before === undefined) return 'cursor is none of this log; start again from the first page.'
  return {
    provider: provider ?? '',
    event_type: event_type ?? '',
    since,
    limit,
    text: payload.text ?? '',
    json: payload.json === null ? '' : memberText(payload.json),
    filter: { provider, event_type, ...bound, before },
    payload,
  }
}

/** The most characters of `text` and of `json`. */
export const LONGEST_SEARCH = 500

/** Reads `provider`, `event_type`, `text` and `json` of a query; a line that says what is wrong. */
export function readWanted(query: URLSearchParams): Wanted | string {
  const text = textOf(query, 'text')
  const json = textOf(query, 'json').trim()
  for (const [name, value] of Object.entries({ text, json })) {
    if (value.length > LONGEST_SEARCH)
      return `${name} may have ${LONGEST_SEARCH} characters at most.`
  }
  const member = readMember(json)
  if (member === undefined) return 'json must be path=value, such as data.object.id=evt_1.'
  return {
    provider: textOf(query, 'provider') || null,
    event_type: textOf(query, 'event_type') || null,
    payload: { text: text || null, json: member },
  }
}

/** A member as `readWanted` reads it. */
export function memberText({ path, value }: NonNullable<PayloadFilter['json']>): string {
  return `${path}=${value}`
}

/** A parameter as the database can compare it: it takes no NUL, so one is an unknown character. */
function textOf(query: URLSearchParams, name: string): string {
  return (query.get(name) ?? '').replaceAll('\0', '\u{FFFD}')
}

/** `data.object.id=evt_1`: steps of letters, digits, `_` and `-` between dots, then the value's text. */
function readMember(text: string): PayloadFilter['json'] | undefined {
  if (text === '') return null
  const [, path, value] = /^([\w-]+(?:\.[\w-]+)*)=(.*)$/s.exec(text) ?? []
  return path === undefined || value === undefined ? undefined : { path, value }
}

/** The filter that every event passes. */
export const EVERY_EVENT: EventFilter = {
  provider: null,
  event_type: null,
  sinceTime: null,
  sinceId: null,
  before: null,
}

/** The test of a filtered stream, or undefined when nothing is filtered. */
export function eventTest(
  provider: string | null,
  eventType: string | null,
): ((event: EventSummary) => boolean) | undefined {
  if (!provider && !eventType) return undefined
  return (event) =>
    (!provider || event.provider === provider) && (!eventType || event.event_type === eventType)
}

/** Opaque position of the last row of a page. */
export function eventCursor(row: { readonly received_at: Date; readonly id: number }): string {
  return encodeCursor([row.received_at.getTime(), row.id])
}

/** Opaque position of the last row of a page of rejections. */
export function rejectionCursor(row: { readonly id: number }): string {
  return encodeCursor([row.id])
}

/** The id in a cursor of rejections: null without one, undefined when it is none of ours. */
export function readRejectionCursor(text: string | null): number | null | undefined {
  if (text === null || text === '') return null
  const id = decodeCursor(text)?.[0]
  return Number.isSafeInteger(id) ? (id as number) : undefined
}

type Since = Pick<EventFilter, 'sinceTime' | 'sinceId'>

const TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/
const LARGEST_INT64 = 2n ** 63n - 1n

/** A time without a zone is taken as UTC, like every time that the pages show without script. */
function readSince(text: string): Since | undefined {
  if (text === '') return { sinceTime: null, sinceId: null }
  if (/^\d{1,19}$/.test(text)) {
    // No event has an id that a number can't hold exactly.
    const sinceId = Math.min(Number(text), Number.MAX_SAFE_INTEGER)
    return BigInt(text) <= LARGEST_INT64 ? { sinceTime: null, sinceId } : undefined
  }
  const day = TIME.exec(text)?.[1]
  if (day === undefined || !isDay(day)) return undefined
  const zoned = /(Z|[+-]\d{2}:\d{2})$/.test(text) || !text.includes('T') ? text : `${text}Z`
  const sinceTime = new Date(zoned)
  // The database knows no year 0, and a zone may lead out of the last one that has four digits.
  const year = sinceTime.getUTCFullYear()
  return year >= 1 && year <= 9999 ? { sinceTime, sinceId: null } : undefined
}

/** False for a day such as 30 February, which `Date` takes for one in March. */
function isDay(text: string): boolean {
  const day = new Date(text)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

function readCursor(text: string): { received_at: Date; id: number } | undefined {
  const [time, id] = decodeCursor(text) ?? []
  if (!Number.isSafeInteger(time) || !Number.isSafeInteger(id)) return undefined
  const received_at = new Date(time as number)
  const year = received_at.getUTCFullYear()
  return year >= 1970 && year <= 9999 ? { received_at, id: id as number } : undefined
}
