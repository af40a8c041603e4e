import Type from 'typebox'
import type { EventSummary } from '../../db/hooks/events.ts'
import { decodeCursor, encodeCursor } from '../../kernel/text.ts'
import { badRequest } from '../../kernel/fault.ts'
import { field, fits, parsed, withDefault } from '../../kernel/validate.ts'

/** Characters of `text` and of `json`. */
export const MAX_SEARCH_LENGTH = 500
const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
const Limit = Type.Integer({ minimum: 1, maximum: MAX_LIMIT })

const anyText = withDefault(Type.String(), '')

/** Text of a query, with what the API's document says of it. */
function queryText(description: string) {
  return withDefault(Type.String({ description }), '')
}

const isShort = [
  (value: string): boolean => value.length <= MAX_SEARCH_LENGTH,
  `may have ${MAX_SEARCH_LENGTH} characters at most.`,
] as const
export const SINCE_FORM = 'must be an event id or a time such as 2026-01-31T12:00:00Z.'
const JSON_FORM = 'must be path=value, such as data.object.id=evt_1.'

/** The filters of the log, the tools and forwarders. An empty text is no filter. */
export const filterFields = {
  provider: queryText('Only events of this provider'),
  event_type: queryText('Only events of exactly this type'),
  text: field(
    queryText("Only events with this text in the payload's first MiB"),
    'must be text.',
    isShort,
  ),
  json: field(
    queryText('Only events with this member in the JSON payload: data.object.id=evt_1'),
    JSON_FORM,
    isShort,
    [(given) => readMember(given) !== undefined, JSON_FORM],
  ),
}
type FilterTexts = Type.Static<Type.TObject<typeof filterFields>>

/** The query of a list of events: of the API, and of the tool that lists them. */
export const EventQuery = Type.Object({
  ...filterFields,
  limit: parsed(
    withDefault(Limit, DEFAULT_LIMIT),
    `must be a whole number from 1 to ${MAX_LIMIT}.`,
    (given) => {
      if (given === '') return DEFAULT_LIMIT
      return fits(Limit, given) ? given : undefined
    },
  ),
  since: field(queryText('Lower bound: a time, or the id of an event'), SINCE_FORM, [
    (given) => readSince(given) !== undefined,
    SINCE_FORM,
  ]),
  cursor: queryText('next_cursor of the page before'),
})
export type EventQuery = Type.Static<typeof EventQuery>

const OptionalId = Type.Integer({ minimum: 0 })
/** The id of an event; 0 without one. */
const optionalId = parsed(withDefault(OptionalId, 0), 'must be an event id.', (given) => {
  if (given === '') return 0
  return fits(OptionalId, given) ? given : undefined
})

/** The query of `/log` (hooks.md section 4). */
export const LogQuery = Type.Object({
  ...EventQuery.properties,
  /** `1` for the rejected deliveries. */
  rejected: anyText,
  /** Only events above this one: those that came since a page was read. */
  above: optionalId,
  /** The event that stands beside the list. */
  open: optionalId,
})
export type LogQuery = Type.Static<typeof LogQuery>

/**
 * The filters as the queries take them; null is no filter. `text` is anywhere in the first MiB of
 * the payload; `member`, `path` and `value` are of its JSON.
 */
export function filterOf({ provider, event_type, text, json }: FilterTexts) {
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

/** Numbers that jsonb gives back as they were sent: it knows no exponent and no negative zero. */
const SAME_NUMBER = /^(?!-0(\.0+)?$)-?\d+(\.\d+)?$/

/**
 * The filter `json` for a member of a payload: its steps, and its value as JSON text. Null where
 * the filter can't name it, as with a step that has a dot, or would find nothing.
 */
export function memberFilter(steps: readonly string[], source: string): string | null {
  // jsonb has no text for null.
  if (source === 'null') return null
  const isText = source.startsWith('"')
  if (!isText && !SAME_NUMBER.test(source) && !/^(true|false)$/.test(source)) return null
  if (!steps.every((step) => /^[\w-]+$/.test(step))) return null
  const value = isText ? (JSON.parse(source) as string) : source
  const text = `${steps.join('.')}=${value}`
  if (text.length > MAX_SEARCH_LENGTH || !text.isWellFormed()) return null
  // White space at the end is not kept, and a NUL is not stored.
  return readMember(text)?.value === value ? text : null
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

/** The first event of a list: by its id, or by when it was received. */
export type Since = { id: number } | { time: Date }

const TIME = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})?)?$/
const MAX_INT64 = 2n ** 63n - 1n

/** Reads an event id or a time. A time without a zone is UTC, as pages show it without script. */
export function readSince(given: string): Since | undefined {
  const text = given.trim()
  if (text === '') return { id: 0 }
  if (/^\d{1,19}$/.test(text)) {
    // Larger ids would lose digits; no event has one.
    const id = Math.min(Number(text), Number.MAX_SAFE_INTEGER)
    return BigInt(text) <= MAX_INT64 ? { id } : undefined
  }
  const day = TIME.exec(text)?.[1]
  if (day === undefined || !isDay(day)) return undefined
  const zoned = /(Z|[+-]\d{2}:\d{2})$/.test(text) || !text.includes('T') ? text : `${text}Z`
  const time = new Date(zoned)
  // PostgreSQL has no year 0, and a time zone may move the time into the year 10000.
  const year = time.getUTCFullYear()
  return year >= 1 && year <= 9999 ? { time } : undefined
}

/** False for a day such as 30 February, which `Date` reads as one in March. */
function isDay(text: string): boolean {
  const day = new Date(text)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

/** An opaque cursor: the id of the last row on a page. Ids are in the order of `received_at`. */
export function cursorAt(id: number): string {
  return encodeCursor([id])
}

/** The id in a cursor; for an empty text, one above all events and rejections. */
export function readCursor(text: string): number {
  if (text === '') return Number.MAX_SAFE_INTEGER
  const [id, ...others] = decodeCursor(text) ?? []
  if (Number.isSafeInteger(id) && others.length === 0) return id as number
  throw badRequest('cursor is not valid; start again from the first page.', 'cursor')
}
