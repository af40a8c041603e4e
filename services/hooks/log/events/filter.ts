import * as Type from '../../../../kernel/schema.ts'
import type { EventSummary } from '../../../../db/hooks/log/events.ts'
import { pathOf, readMember } from '../../../../kernel/json-text.ts'
import { decodeCursor, encodeCursor } from '../../../../kernel/cursor.ts'
import { fitsPattern } from '../../../../kernel/text.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { parseDuration } from '../../../../kernel/time.ts'
import { field, fits, parsed, withDefault } from '../../../../kernel/validate.ts'

/** Characters of `text`, `json` and `header`. */
export const MAX_SEARCH_LENGTH = 500
/** The same as JSON text, in which a character may take six. */
const MAX_SEARCH_SOURCE = 6 * MAX_SEARCH_LENGTH
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
const BOUND_FORM =
  'must be an event id or a time such as 2026-01-31T12:00:00Z, today, or 24h (the last 24 hours).'
const JSON_FORM =
  'must be path=value, such as data.object.id=evt_1, or *.name=value for a member anywhere.'
/** Forwarders compare whole types: with `invoice.*` one would wait for events for ever. */
const WHOLE_TYPE_FORM = 'must be a whole type, without "*".'
const HEADER_FORM = 'must be name or name=value, such as x-github-event=push.'

/** The filters of the log and of forwarders. An empty text is no filter. */
export const filterFields = {
  provider: queryText('Only events of this provider'),
  event_type: field(queryText('Only events of exactly this type'), WHOLE_TYPE_FORM, [
    (type) => !type.includes('*'),
    WHOLE_TYPE_FORM,
  ]),
  text: field(
    queryText("Only events with this text, in any case, in the payload's first MiB, once decoded"),
    'must be text.',
    isShort,
  ),
  json: field(
    queryText(
      'Only events with this member in the JSON payload: data.object.id=evt_1, or ' +
        '*.customer=Globex for a member of this name (or customer_name and the like) anywhere; ' +
        'one line for each member',
    ),
    JSON_FORM,
    isShort,
    [(given) => readMembers(given) !== undefined, JSON_FORM],
  ),
}

/** `json` where there may be one member only. */
export const memberField = field(
  queryText('Only events with this member in the JSON payload: data.object.id=evt_1'),
  JSON_FORM,
  isShort,
  [(given) => (readMembers(given)?.length ?? 2) <= 1, JSON_FORM],
)

const Verified = Type.Unsafe<'' | 'true' | 'false'>({
  type: 'string',
  enum: ['', 'true', 'false'],
  description: 'Only events whose signature was verified, or only others',
})

/** The filters of the log without the place in its list. */
export const searchFields = {
  ...filterFields,
  event_type: queryText(
    'Only events of this type. "*" stands for any characters, and with it upper and lower case ' +
      'are alike: invoice.*, *.failed. So they are where no event has exactly this type',
  ),
  verified: parsed(withDefault(Verified, ''), 'must be true or false.', (given) => {
    const text = String(given)
    return text === '' || text === 'true' || text === 'false' ? text : undefined
  }),
  header: field(
    queryText('Only events with this header: name, or name=value'),
    HEADER_FORM,
    isShort,
    [(given) => readHeader(given) !== undefined, HEADER_FORM],
  ),
}
type FilterTexts = Type.Static<Type.TObject<typeof filterFields>>
type SearchTexts = Type.Static<Type.TObject<typeof searchFields>>

const bound = (description: string) =>
  field(queryText(description), BOUND_FORM, [isBound, BOUND_FORM])

/** The query of an export of events. */
export const ExportQuery = Type.Object({
  ...searchFields,
  since: bound('Lower bound: a time, today, how long ago (24h), or the id of an event'),
  until: bound('Upper bound: before a time, or up to the id of an event'),
})
export type ExportQuery = Type.Static<typeof ExportQuery>

/** The query of a list of events: of the API, and of the tool that lists them. */
export const EventQuery = Type.Object({
  ...ExportQuery.properties,
  limit: parsed(
    withDefault(Limit, DEFAULT_LIMIT),
    `must be a whole number from 1 to ${MAX_LIMIT}.`,
    (given) => {
      if (given === '') return DEFAULT_LIMIT
      return fits(Limit, given) ? given : undefined
    },
  ),
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
  /** Filters as the field of the page has them: `type:invoice.* customer:Globex`. */
  q: anyText,
  /** A time of the menu; of own days the first and the last, in the viewer's zone. */
  when: anyText,
  from: anyText,
  to: anyText,
  zone: anyText,
})
export type LogQuery = Type.Static<typeof LogQuery>

/** The filters of the log that are texts. */
export type FilterText = Record<keyof SearchTexts | 'since' | 'until', string>

/** The filters that forwarders have, too, as the queries take them; null is no filter. */
export function filterOf({ provider, event_type, text, json }: FilterTexts) {
  const members = readMembers(json) ?? []
  const [first] = members
  return {
    provider: storable(provider) || null,
    event_type: storable(event_type) || null,
    text: text === '' ? null : Buffer.from(storable(text)),
    // The payload must contain a member's name: a cheap test before its JSON is parsed.
    member: first === undefined ? null : Buffer.from(first.name),
    members: first === undefined ? null : members.map(columnsOf),
  }
}

/** All filters of the log as its queries take them. */
export function searchOf(query: SearchTexts) {
  const { event_type, ...filter } = filterOf(query)
  const { name = null, value = null } = readHeader(query.header) ?? {}
  const isPattern = event_type !== null && event_type.includes('*')
  return {
    ...filter,
    event_type: isPattern ? null : event_type,
    // "*" alone is no filter.
    type_like: isPattern && /[^*]/.test(event_type) ? event_type : null,
    verified: query.verified === '' ? null : query.verified === 'true',
    header: name,
    header_value: value,
  }
}
export type SearchFilter = ReturnType<typeof searchOf>

/** Whether the filters read payloads: such a search runs in steps and may take seconds. */
export function readsPayloads({ text, json }: Pick<FilterTexts, 'text' | 'json'>): boolean {
  return text !== '' || json.trim() !== ''
}

/** Whether the filters read what a sender wrote into headers or payload. */
export function readsContent(query: Pick<SearchTexts, 'text' | 'json' | 'header'>): boolean {
  return readsPayloads(query) || query.header.trim() !== ''
}

/** PostgreSQL stores no NUL. It becomes the replacement character, so no event matches. */
function storable(text: string): string {
  return text.replaceAll('\0', '\u{FFFD}')
}

/** A member of JSON that is wanted. */
interface Member {
  /** As it was written, with `*.` before the name of a member anywhere. */
  path: string
  steps: readonly string[]
  /** The text of its value. */
  value: string
  /** Text that a payload with the member has: a cheap test before its JSON is parsed. */
  name: string
}

/** A member as hooks.has_members() and hooks.is_wanted() read it. */
export function columnsOf({ path, value, name, steps }: Member) {
  return [path, value, name, steps] as const
}

/** Reads `data.object.id=evt_1`, a line for each member. Undefined for another form. */
export function readMembers(text: string): readonly Member[] | undefined {
  const lines = storable(text).split(/\r?\n/)
  const members: Member[] = []
  for (const line of lines.map((one) => one.trim())) {
    if (line === '') continue
    const isAnywhere = line.startsWith('*.')
    const member = readMember(isAnywhere ? line.slice(2) : line)
    if (member === undefined || (isAnywhere && member.steps.length > 1)) return undefined
    const path = isAnywhere ? `*.${member.path}` : member.path
    members.push({ ...member, path, name: nameIn(member.steps) })
  }
  return members
}

/**
 * Of the last step that is a name, not a place in an array, what JSON never escapes: the longest
 * run of letters and digits of ASCII.
 */
function nameIn(steps: readonly string[]): string {
  const name = steps.findLast((step) => !/^\d+$/.test(step)) ?? ''
  const runs = name.match(/[\w-]+/g) ?? []
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), '')
}

/** Reads `name` or `name=value`; the name in lower case. Undefined for another form. */
function readHeader(text: string): { name?: string; value?: string } | undefined {
  if (text.trim() === '') return {}
  const [given = '', ...rest] = storable(text).split('=')
  const name = given.trim().toLowerCase()
  if (name === '' || /\s/.test(name)) return undefined
  return rest.length === 0 ? { name } : { name, value: rest.join('=').trim() }
}

/** Numbers that jsonb gives back as they were sent: it knows no exponent and no negative zero. */
const SAME_NUMBER = /^(?!-0(\.0+)?$)-?\d+(\.\d+)?$/

/**
 * The filter `json` for a member of a payload: its steps, and its value as JSON text. Null where
 * the filter can't name it, as with an empty step, or would find nothing.
 */
export function memberFilter(steps: readonly string[], source: string): string | null {
  // jsonb has no text for null.
  if (source === 'null') return null
  // Skips long names and values: a long name may be the parent of many values.
  const length = steps.reduce((sum, step) => sum + step.length, source.length)
  if (length > MAX_SEARCH_SOURCE) return null
  const isText = source.startsWith('"')
  if (!isText && !SAME_NUMBER.test(source) && !/^(true|false)$/.test(source)) return null
  if (!steps.every((step) => /^\P{Cc}+$/u.test(step))) return null
  const value = isText ? (JSON.parse(source) as string) : source
  const text = `${pathOf(steps)}=${value}`
  if (text.length > MAX_SEARCH_LENGTH || !text.isWellFormed()) return null
  // White space at the end is not kept, a line break begins a member, and a NUL is not stored.
  return readMembers(text)?.[0]?.value === value ? text : null
}

/** Whether an event passes the filters of a stream; undefined without filters. */
export function eventTest(
  provider: string | undefined,
  eventType: string | undefined,
): ((event: EventSummary) => boolean) | undefined {
  if (!provider && !eventType) return undefined
  const isWanted = eventType ? typeTest(eventType) : () => true
  return (event) => (!provider || event.provider === provider) && isWanted(event.event_type)
}

/** As hooks.is_like() has it where there is a "*"; else exactly the type. */
function typeTest(wanted: string): (type: string | null) => boolean {
  if (!wanted.includes('*')) return (type) => type === wanted
  const pattern = wanted.toLowerCase()
  return (given) => fitsPattern(given?.toLowerCase() ?? '', pattern)
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

/**
 * Reads a bound of a list as `readSince` does; it may also be a duration before `now`, or `today`,
 * the beginning of the day in UTC.
 */
export function readBound(given: string, now: Date): Since | undefined {
  const text = given.trim()
  if (text === 'today') return { time: new Date(now.toISOString().slice(0, 10)) }
  const seconds = /[smhd]$/.test(text) ? parseDuration(text) : undefined
  if (seconds === undefined) return readSince(text)
  return { time: new Date(Math.max(0, now.getTime() - seconds * 1000)) }
}

/** A filter whose bounds do not change with time: `24h` becomes the time that it means now. */
export function fixedBounds<F extends Pick<ExportQuery, 'since' | 'until'>>(
  filter: F,
  now: Date,
): F {
  const fixed = (text: string): string => {
    const bound = text.trim() === '' ? undefined : readBound(text, now)
    if (bound === undefined) return ''
    return 'id' in bound ? String(bound.id) : bound.time.toISOString()
  }
  return { ...filter, since: fixed(filter.since), until: fixed(filter.until) }
}

function isBound(given: string): boolean {
  return readBound(given, new Date(0)) !== undefined
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
