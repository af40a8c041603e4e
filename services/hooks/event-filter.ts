import Type from 'typebox'
import type { EventSummary, Position } from '../../db/hooks/events.ts'
import { decodeCursor, encodeCursor } from '../../kernel/text.ts'
import { badRequest } from '../../kernel/fault.ts'
import { field, fits, parsed, withDefault } from '../../kernel/validate.ts'

/** Characters of `text` and of `json`. */
export const MAX_SEARCH_LENGTH = 500
const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
const Limit = Type.Integer({ minimum: 1, maximum: MAX_LIMIT })

const anyText = withDefault(Type.String(), '')
const isShort = [
  (value: string): boolean => value.length <= MAX_SEARCH_LENGTH,
  `may have ${MAX_SEARCH_LENGTH} characters at most.`,
] as const
const SINCE_FORM = 'must be an event id or a time such as 2026-01-31T12:00:00Z.'
const JSON_FORM = 'must be path=value, such as data.object.id=evt_1.'

/** The filters of the log, the tools and forwarders. An empty text is no filter. */
export const filterFields = {
  provider: anyText,
  event_type: anyText,
  /** Text in the payload. */
  text: field(anyText, 'must be text.', isShort),
  /** `path=value`: a member of the payload's JSON. */
  json: field(anyText, JSON_FORM, isShort, [(text) => readMember(text) !== undefined, JSON_FORM]),
}
export const FilterTexts = Type.Object(filterFields)
export type FilterTexts = Type.Static<typeof FilterTexts>

/** The query of `/log` (hooks.md section 4), and the arguments of the tool that lists events. */
export const LogQuery = Type.Object({
  ...filterFields,
  limit: parsed(
    withDefault(Limit, DEFAULT_LIMIT),
    `must be a whole number from 1 to ${MAX_LIMIT}.`,
    (given) => {
      if (given === '') return DEFAULT_LIMIT
      return fits(Limit, given) ? given : undefined
    },
  ),
  since: field(anyText, SINCE_FORM, [(text) => readSince(text) !== undefined, SINCE_FORM]),
  cursor: anyText,
  /** `1` for the rejected deliveries. */
  rejected: anyText,
})
export type LogQuery = Type.Static<typeof LogQuery>

/** The filters as the queries take them; null is no filter. */
export interface EventFilter {
  readonly provider: string | null
  readonly event_type: string | null
  /** Bytes anywhere in the first MiB of the payload. */
  readonly text: Buffer | null
  /** A member of the payload's JSON: its name, its path and the text of its value. */
  readonly member: Buffer | null
  readonly path: string | null
  readonly value: string | null
}

/** The filter that fields ask for. */
export function filterOf({ provider, event_type, text, json }: FilterTexts): EventFilter {
  const { path = null, value = null } = readMember(json) ?? {}
  // The payload must contain the member's name: a cheap test before its JSON is parsed.
  const name = path?.split('.').findLast((step) => !/^\d+$/.test(step)) ?? ''
  return {
    provider: storable(provider) || null,
    event_type: storable(event_type) || null,
    text: text === '' ? null : Buffer.from(storable(text)),
    member: path === null ? null : Buffer.from(name),
    path,
    value,
  }
}

/** Whether the filters read payloads: such a search runs in steps and may take seconds. */
export function readsPayloads({ text, json }: FilterTexts): boolean {
  return text !== '' || json.trim() !== ''
}

/** PostgreSQL stores no NUL. It becomes the replacement character, so no event matches. */
function storable(text: string): string {
  return text.replaceAll('\0', '\u{FFFD}')
}

/**
 * `data.object.id=evt_1`: steps of letters, digits, `_` and `-` between dots, then the value's
 * text.
 */
function readMember(text: string): { path?: string; value?: string } | undefined {
  if (text.trim() === '') return {}
  const [, path, value] = /^([\w-]+(?:\.[\w-]+)*)=(.*)$/s.exec(storable(text).trim()) ?? []
  return path === undefined || value === undefined ? undefined : { path, value }
}

/** Whether an event passes the filters of a stream; undefined without filters. */
export function eventTest(
  provider: string | null,
  eventType: string | null,
): ((event: EventSummary) => boolean) | undefined {
  if (!provider && !eventType) return undefined
  return (event) =>
    (!provider || event.provider === provider) && (!eventType || event.event_type === eventType)
}

/** Lower bounds by time and by id. */
export interface Since {
  readonly since_time: Date | null
  readonly since_id: number | null
}

const TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/
const MAX_INT64 = 2n ** 63n - 1n

/** Reads an event id or a time. A time without a zone is UTC, as pages show it without script. */
export function readSince(given: string): Since | undefined {
  const text = given.trim()
  if (text === '') return { since_time: null, since_id: null }
  if (/^\d{1,19}$/.test(text)) {
    // Larger ids would lose digits; no event has one.
    const since_id = Math.min(Number(text), Number.MAX_SAFE_INTEGER)
    return BigInt(text) <= MAX_INT64 ? { since_time: null, since_id } : undefined
  }
  const day = TIME.exec(text)?.[1]
  if (day === undefined || !isDay(day)) return undefined
  const zoned = /(Z|[+-]\d{2}:\d{2})$/.test(text) || !text.includes('T') ? text : `${text}Z`
  const since_time = new Date(zoned)
  // PostgreSQL has no year 0, and a time zone may move the time into the year 10000.
  const year = since_time.getUTCFullYear()
  return year >= 1 && year <= 9999 ? { since_time, since_id: null } : undefined
}

/** False for a day such as 30 February, which `Date` reads as one in March. */
function isDay(text: string): boolean {
  const day = new Date(text)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

/** An opaque cursor: the position of the last event on a page. */
export function eventCursor(row: Position): string {
  return encodeCursor([row.received_at.getTime(), row.id])
}

/** The position in a cursor; null for an empty text. */
export function readEventCursor(text: string): Position | null {
  if (text === '') return null
  const [time, id] = decodeCursor(text) ?? []
  if (Number.isSafeInteger(time) && Number.isSafeInteger(id)) {
    const received_at = new Date(time as number)
    const year = received_at.getUTCFullYear()
    if (year >= 1970 && year <= 9999) return { received_at, id: id as number }
  }
  throw badRequest('cursor is not valid; start again from the first page.', 'cursor')
}

/** An opaque cursor: the last rejection on a page. */
export function rejectionCursor({ id }: { readonly id: number }): string {
  return encodeCursor([id])
}

/** The id in a cursor of rejections; for an empty text, one above all ids. */
export function readRejectionCursor(text: string): number {
  if (text === '') return Number.MAX_SAFE_INTEGER
  const id = decodeCursor(text)?.[0]
  if (Number.isSafeInteger(id)) return id as number
  throw badRequest('cursor is not valid; start again from the first page.', 'cursor')
}
