import * as Type from '../../../../kernel/schema.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { isObject, objectOf } from '../../../../kernel/json.ts'
import { field, parsed } from '../../../../kernel/validate.ts'
import { columnsOf, readMembers, readSince, SINCE_FORM } from '../../log/events/filter.ts'
import { parseTarget, TARGET_FORM } from '../replays/outgoing.ts'
import { SCHEME_NAMES, schemeNamed } from '../../receive/schemes/schemes.ts'
import { isGenericName } from '../../receive/schemes/provider-names.ts'
import { isSignable } from '../../receive/schemes/signing.ts'

// What is configured of a destination: the fields of the pages, the members of the API and the
// flags of the command, as one schema.

const MAX_RATE = 10_000
export const MAX_TIMEOUT_S = 30
const DEFAULT_TIMEOUT_S = 10
/** Of providers, types and members, each. */
const MAX_FILTERS = 20
const MAX_FILTER_LENGTH = 500

/** The accepted form of a rate, in words. */
export const RATE_FORM = `a number of deliveries a second from 1 to ${MAX_RATE}, such as 50/s`

/** Reads a rate; null (no bound) for nothing, undefined for another form. */
export function readRate(text: string): number | null | undefined {
  if (text === '') return null
  const rate = Number(/^(\d{1,5})(?:\/s)?$/.exec(text)?.[1] ?? 0)
  return rate < 1 || rate > MAX_RATE ? undefined : rate
}

/** The accepted form of a timeout, in words. */
const TIMEOUT_FORM = `a whole number of seconds from 1 to ${MAX_TIMEOUT_S}`

/** Reads a timeout, of which an empty text is the usual one; undefined for another form. */
function readTimeout(given: unknown): number | undefined {
  if (given === '') return DEFAULT_TIMEOUT_S
  const seconds = typeof given === 'string' && /^\d{1,2}$/.test(given) ? Number(given) : given
  if (typeof seconds !== 'number' || !Number.isInteger(seconds)) return undefined
  return seconds >= 1 && seconds <= MAX_TIMEOUT_S ? seconds : undefined
}

export const MAX_NAME = 64
export const NAME_FORM = 'must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.'
const LIST_FORM =
  `a list of texts, or a text with a line each: at most ${MAX_FILTERS}, ` +
  `each of ${MAX_FILTER_LENGTH} characters at most`

/** A list of JSON, or the lines of a field; without empty and repeated ones. */
function readLines(given: unknown): readonly string[] | undefined {
  const lines: unknown = typeof given === 'string' ? given.split('\n') : given
  if (!Array.isArray(lines) || !lines.every((line) => typeof line === 'string')) return undefined
  // PostgreSQL stores neither a NUL nor half a character: no event has such a name or type.
  const texts = lines.map((line) => line.replaceAll('\0', '\u{FFFD}').trim().toWellFormed())
  const known = [...new Set(texts)].filter((line) => line !== '')
  const fit = known.every((line) => line.length <= MAX_FILTER_LENGTH)
  return fit && known.length <= MAX_FILTERS ? known : undefined
}

/** The same, where each line is a member of JSON with its value. */
function readJsonLines(given: unknown): readonly string[] | undefined {
  const lines = readLines(given)
  return lines?.every((line) => readMembers(line)?.length === 1) ? lines : undefined
}

const Lines = (description: string) =>
  Type.Optional(
    Type.Unsafe<readonly string[]>({
      anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'string' }],
      description,
    }),
  )

const MEMBERS_FORM =
  'must be path=value, such as data.object.id=evt_1, a line for each of several.'

/** What stands for a secret that is stored: it is given back to keep it. */
export const CONFIGURED = 'configured'

/** Credentials as they are given; undefined keeps the stored ones, null removes them. */
export interface GivenCredentials {
  sign_with?: SignWith | null | undefined
  headers?: HeaderValues | null | undefined
  authorization?: string | null | undefined
}
interface SignWith {
  scheme?: string | undefined
  secret?: string | null | undefined
}
type HeaderValues = Readonly<Record<string, string | null>>

/**
 * The schemes by which we can sign. For the others only the sender has the key, or they have no
 * signature.
 */
export const SIGNING_SCHEMES = SCHEME_NAMES.filter((name) => {
  const scheme = schemeNamed(name)
  return scheme !== undefined && isSignable(scheme) && scheme.covers === undefined
})

/** The accepted form of a scheme that signs, in words. */
export const SCHEME_FORM =
  'a scheme by which we can sign, such as standard, github or stripe; see: gatehouse schemes'

const SIGN_FORM = `must be {"scheme": …, "secret": …} or null; the scheme must be ${SCHEME_FORM}.`
const HEADERS_FORM =
  'must be an object of names and values, a text with a line "name: value" each, or null.'

function readSignWith(given: unknown): SignWith | null | undefined {
  if (given === null) return null
  const { scheme, secret, ...others } = objectOf(given)
  const isKnown = scheme === undefined || SIGNING_SCHEMES.some((name) => name === scheme)
  const isSecret = secret === undefined || secret === null || typeof secret === 'string'
  const fits = isKnown && isSecret && Object.keys(others).length === 0 && isObject(given)
  return fits ? { scheme: scheme as string | undefined, secret } : undefined
}

/**
 * The members of an object, of which an empty one is none (null); or the lines of a field, where a
 * line without a value removes a header.
 */
function readHeaders(given: unknown): HeaderValues | null | undefined {
  if (given === null) return null
  if (typeof given === 'string') return readHeaderLines(given)
  if (!isObject(given)) return undefined
  const values = Object.values(given)
  if (values.length === 0) return null
  const fit = values.every((value) => value === null || typeof value === 'string')
  return fit ? (given as HeaderValues) : undefined
}

function readHeaderLines(text: string): HeaderValues | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const pairs = lines.map((line) => /^\s*([^:\s]+)\s*:(.*)$/.exec(line))
  if (pairs.includes(null)) return undefined
  return Object.fromEntries(
    pairs.map((pair) => [pair?.[1] ?? '', pair?.[2]?.trim() || null] as const),
  )
}

const credentials = {
  sign_with: parsed(
    Type.Optional(
      Type.Unsafe<SignWith | null>({
        anyOf: [
          {
            type: 'object',
            properties: {
              scheme: { type: 'string', enum: SIGNING_SCHEMES },
              secret: { anyOf: [{ type: 'string' }, { type: 'null' }] },
            },
          },
          { type: 'null' },
        ],
        description: 'Signs by a secret of its own; standard is Standard Webhooks',
      }),
    ),
    SIGN_FORM,
    readSignWith,
  ),
  headers: parsed(
    Type.Optional(
      Type.Unsafe<HeaderValues | null>({
        anyOf: [{ type: 'object' }, { type: 'string' }, { type: 'null' }],
        description: 'Further headers; a value of null removes one, {} all',
      }),
    ),
    HEADERS_FORM,
    readHeaders,
  ),
  authorization: parsed(
    Type.Optional(
      Type.Unsafe<string | null>({
        anyOf: [{ type: 'string' }, { type: 'null' }],
        description: 'Bearer TOKEN, or Basic NAME:PASSWORD',
      }),
    ),
    'must be a text, or null.',
    (given) => (given === null || typeof given === 'string' ? given : undefined),
  ),
}

const fields = {
  url: parsed(Type.String({ format: 'uri' }), `must be ${TARGET_FORM}.`, (given) => {
    const text = String(given).trim()
    return parseTarget(text) === undefined ? undefined : text
  }),
  providers: parsed(
    Lines('Only events of one of these providers'),
    `must be ${LIST_FORM}.`,
    readLines,
  ),
  provider: Type.Optional(Type.String({ description: 'One more of providers' })),
  event_types: parsed(
    Lines(
      'Only events of one of these types. "*" stands for any characters, and with it upper and ' +
        'lower case are alike: invoice.*, *.failed',
    ),
    `must be ${LIST_FORM}.`,
    readLines,
  ),
  event_type: Type.Optional(Type.String({ description: 'One more of event_types' })),
  json: parsed(
    Lines('Only events with all of these members in their JSON: data.object.id=evt_1'),
    MEMBERS_FORM,
    readJsonLines,
  ),
  ordered: field(Type.Optional(Type.Boolean()), 'must be true or false.'),
  rate: parsed(
    Type.Optional(
      Type.Unsafe<number | null>({
        anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }],
      }),
    ),
    `must be ${RATE_FORM}, or nothing.`,
    (given) => (isPlain(given) ? readRate(String(given ?? '').trim()) : undefined),
  ),
  timeout_s: parsed(
    Type.Optional(
      Type.Unsafe<number>({
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        description: 'Seconds for an answer',
      }),
    ),
    `must be ${TIMEOUT_FORM}.`,
    readTimeout,
  ),
  body_template: parsed(
    Type.Optional(
      Type.Unsafe<string | null>({
        anyOf: [{ type: 'string' }, { type: 'null' }],
        description: 'JSON with placeholders, or slack, discord, ntfy or teams',
      }),
    ),
    'must be a text, or null.',
    (given) => {
      if (given === null) return null
      return typeof given === 'string' ? given.trim() || null : undefined
    },
  ),
  since: field(
    Type.Optional(
      Type.String({ description: 'The first event that it gets: its id, or a time; empty: now' }),
    ),
    SINCE_FORM,
    [(text) => readSince(text) !== undefined, SINCE_FORM],
  ),
  ...credentials,
}

/** A text, a number or null: what has one text. */
function isPlain(given: unknown): boolean {
  return given === null || ['string', 'number'].includes(typeof given)
}

/** What may be changed of a destination. A missing filter, order, rate or timeout is the usual one. */
export const DestinationUpdate = Type.Object(
  {
    ...fields,
    version: Type.Optional(
      Type.String({ description: 'The version to change, as in If-Match; empty: any' }),
    ),
  },
  // A filter that is spelled wrong would leave every event in.
  { additionalProperties: false },
)
export type DestinationUpdate = Type.Static<typeof DestinationUpdate>

/** What a new destination is made from. */
export const DestinationForm = Type.Object(
  { name: field(Type.String(), NAME_FORM, [isGenericName, NAME_FORM]), ...fields },
  { additionalProperties: false },
)
export type DestinationForm = Type.Static<typeof DestinationForm>

/** What is configured, as the queries take it. */
export function configOf(given: Omit<DestinationForm, 'name'>) {
  const { url, ordered = false, rate = null, timeout_s = DEFAULT_TIMEOUT_S } = given
  const { body_template = null } = given
  return { url, ordered, rate, timeout_s, body_template, ...filtersOf(given) }
}

type GivenFilters = Pick<
  DestinationForm,
  'providers' | 'provider' | 'event_types' | 'event_type' | 'json'
>

/** Which events are wanted, as the queries take it. */
export type Filters = ReturnType<typeof filtersOf>

function filtersOf(given: GivenFilters) {
  const members = readMembers((given.json ?? []).join('\n')) ?? []
  return {
    providers: withOne(given.providers, given.provider),
    event_types: withOne(given.event_types, given.event_type),
    members: members.map(columnsOf),
  }
}

/** The filters in the fields of a form; undefined while one of them has another form. */
export function readFilters(typed: Readonly<Record<string, string>>): Filters | undefined {
  const given = {
    providers: readLines(typed['providers'] ?? ''),
    event_types: readLines(typed['event_types'] ?? ''),
    json: readJsonLines(typed['json'] ?? ''),
  }
  const { providers, event_types, json } = given
  if (providers === undefined || event_types === undefined || json === undefined) return undefined
  const { provider = '', event_type = '' } = typed
  return filtersOf({ providers, event_types, json, provider, event_type })
}

function withOne(list: readonly string[] = [], one = ''): readonly string[] {
  return [...new Set([...list, ...(readLines(one) ?? [])])]
}

/** 422 for what the form of a value allows, and nothing else does. */
export function unprocessable(message: string, field: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', message, { field })
}
