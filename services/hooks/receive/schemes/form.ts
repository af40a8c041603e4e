import * as Type from '../../../../kernel/schema.ts'
import type {
  Expected,
  Place,
  SchemeChanges,
  SchemeRow,
} from '../../../../db/hooks/receive/providers.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { PATH } from '../../../../kernel/json-text.ts'
import { field } from '../../../../kernel/validate.ts'
import { ANY, presetNamed, schemeNamed } from './schemes.ts'

// How an operator describes a sender that signs in its own way, the row of the scheme `hmac`; and
// where deliveries of any other scheme say what they are.

const HEADER_FORM = 'must be the name of a header.'

const header = field(Type.Optional(Type.String()), HEADER_FORM, [
  (name) => /^[a-z\d_-]{0,100}$/i.test(name),
  HEADER_FORM,
])

const SIGNED_FORM =
  'must be what is signed, such as {body}, {timestamp}.{body} or {id}.{timestamp}.{body}: ' +
  '{id} is followed by a full stop, and {body} comes last.'

const TYPE_PATH = new RegExp(`^${PATH}$`, 'u')
/**
 * A delivery id holds no full stop and a time only digits, so a signed text can be divided in one
 * way.
 */
const SIGNED = /^[\w.:,;/|=+-]{0,32}(?:\{id\}\.)?(?:\{timestamp\}[^\w{}]?)?\{body\}$/

const PREFIX_FORM = 'must be up to 64 letters, digits and signs, such as sha256=.'
const PATH_FORM = 'must be the path of a member, such as event.type.'

export const MAX_TOPICS = 20
const TOPICS_FORM = 'must be up to 20 topics, such as arn:aws:sns:eu-west-1:123456789012:orders.'
const ISSUER_FORM = 'must be the https:// URL of the issuer, to the letter, without a query.'
const CLAIM_FORM = 'must be up to 500 printable characters without a space.'

const claim = field(Type.Optional(Type.String()), CLAIM_FORM, [
  (text) => /^[\x21-\x7e]{0,500}$/.test(text),
  CLAIM_FORM,
])

/** The fields of a row; an empty text stands for an absent one. */
export const SchemeFields = Type.Object({
  header,
  prefix: field(Type.Optional(Type.String()), PREFIX_FORM, [
    (text) => /^[\w.:,;/|=+ -]{0,64}$/.test(text),
    PREFIX_FORM,
  ]),
  encoding: field(
    Type.Optional(Type.Enum(['', 'hex', 'base64', 'base64url'])),
    'must be hex, base64 or base64url.',
  ),
  algorithm: field(
    Type.Optional(Type.Enum(['', 'sha256', 'sha512'])),
    'must be sha256 or sha512 (SHA-1 is refused: it is broken).',
  ),
  signed_text: field(Type.Optional(Type.String()), SIGNED_FORM, [
    (text) => text === '' || SIGNED.test(text),
    SIGNED_FORM,
  ]),
  timestamp_header: header,
  event_type_header: header,
  event_type_json: field(Type.Optional(Type.String()), PATH_FORM, [
    (path) => (path === '' || TYPE_PATH.test(path)) && path.length <= 200,
    PATH_FORM,
  ]),
  id_header: header,
  /** Separated by commas or spaces. */
  topics: field(Type.Optional(Type.String()), TOPICS_FORM, [
    (text) => areTopics(topicsIn(text)),
    TOPICS_FORM,
  ]),
  issuer: field(Type.Optional(Type.String()), ISSUER_FORM, [
    (text) => text === '' || isIssuer(text),
    ISSUER_FORM,
  ]),
  audience: claim,
  subject: claim,
})
export type SchemeFields = Type.Static<typeof SchemeFields>

/**
 * Reads what an operator says of a scheme: of `hmac` all, of any other one where its type and id
 * stand. Throws a fault that names the field that is missing, contradicts another one, or has no
 * effect.
 */
export function readSchemeRow(scheme: string, fields: SchemeFields): SchemeChanges | null {
  refuseCommonHeaders(fields)
  if (scheme === 'hmac') return rowOf(fields)
  const { event_type_header: typeHeader, event_type_json: typePath, id_header: id } = fields
  const isKnown = presetNamed(scheme) !== undefined
  const asked = Object.keys(schemeNamed(scheme)?.asks ?? {})
  const changed = isKnown ? ['event_type_header', 'event_type_json', 'id_header', ...asked] : []
  const stray = Object.entries(fields).find(([name, text]) => text && !changed.includes(name))
  if (stray !== undefined) throw wrong(stray[0], OTHER_SCHEME[stray[0]] ?? OF_HMAC)
  refuseTwoTypes(fields)
  if (id && schemeNamed(scheme)?.signed.includes('{id}')) {
    throw wrong('id_header', `can't be another one: ${scheme} signs the id.`)
  }
  const type = typePlace(typeHeader, typePath)
  const expected = expectedOf(scheme, fields)
  const changes = {
    ...(type && { type }),
    ...(id && { id: named(id) ?? ANY.id }),
    ...(expected && { expected }),
  }
  return Object.keys(changes).length === 0 ? null : changes
}

const OF_HMAC = 'is for the scheme hmac alone.'
const OTHER_SCHEME: Readonly<Record<string, string>> = {
  topics: 'is for the scheme aws-sns alone.',
  issuer: 'is for the scheme openid alone.',
  audience: 'is for the schemes openid and google-pubsub alone.',
  subject: 'is for the schemes openid and google-pubsub alone.',
}

/** What the deliveries of a scheme must have; undefined for a scheme that asks nothing. */
function expectedOf(scheme: string, fields: SchemeFields): Expected | undefined {
  const { topics: typed = '', issuer, audience, subject } = fields
  const given: Expected = {
    ...(typed.trim() !== '' && { topics: readTopics(typed) }),
    ...(issuer && { issuer }),
    ...(audience && { audience }),
    ...(subject && { subject }),
  }
  const asks = Object.entries(schemeNamed(scheme)?.asks ?? {})
  const missing = asks.find(([name, isNeeded]) => isNeeded && !(name in given))
  if (missing !== undefined) throw wrong(missing[0], `is missing: ${scheme} needs it.`)
  return Object.keys(given).length === 0 ? undefined : given
}

/** The topics of a list, each once. Throws 422 for another form. */
export function readTopics(text: string): string[] {
  const topics = topicsIn(text)
  if (!areTopics(topics)) throw wrong('topics', TOPICS_FORM)
  return [...new Set(topics)]
}

function topicsIn(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((topic) => topic !== '')
}

function areTopics(topics: readonly string[]): boolean {
  return topics.length <= MAX_TOPICS && topics.every((topic) => /^[\w:.-]{1,300}$/.test(topic))
}

/** Compared to the letter with the claim of a token: nothing is brought into another form. */
function isIssuer(text: string): boolean {
  const url = URL.parse(text)
  const isPlain = url?.username === '' && url.password === '' && url.search + url.hash === ''
  return isPlain && url.protocol === 'https:' && text.length <= 500 && !/[\s?#@]/.test(text)
}

function typePlace(header: string | undefined, path: string | undefined): Place | undefined {
  return path ? { headers: [], json: [path] } : named(header)
}

function rowOf(fields: SchemeFields): SchemeRow {
  refuseContradictions(fields)
  const { header = '', event_type_header: typeHeader, event_type_json: typePath } = fields
  const type = typePlace(typeHeader, typePath)
  const id = named(fields.id_header)
  return {
    signature: [header.toLowerCase()],
    prefix: fields.prefix ?? '',
    encoding: fields.encoding || 'hex',
    algorithm: fields.algorithm || 'sha256',
    signed: fields.signed_text || '{body}',
    timestamp: named(fields.timestamp_header)?.headers ?? [],
    type: type ?? ANY.type,
    id: id ?? ANY.id,
  }
}

function named(header: string | undefined): Place | undefined {
  return header ? { headers: [header.toLowerCase()], json: [] } : undefined
}

function refuseContradictions(fields: SchemeFields): void {
  const { signed_text: signed = '', timestamp_header: time, id_header: id } = fields
  if (!fields.header) throw wrong('header', 'is missing: it names where the signature is.')
  if (signed.includes('{timestamp}') && !time) {
    throw wrong('timestamp_header', 'is missing: signed_text has {timestamp}.')
  }
  if (time && !signed.includes('{timestamp}')) {
    const reason = 'a time that is not signed proves nothing'
    throw wrong('timestamp_header', `needs {timestamp} in signed_text: ${reason}.`)
  }
  if (signed.includes('{id}') && !id) {
    throw wrong('id_header', 'is missing: signed_text has {id}.')
  }
  refuseTwoTypes(fields)
  const seen = new Map<string, string>()
  for (const name of HEADERS) {
    const header = fields[name]?.toLowerCase()
    if (!header) continue
    const other = seen.get(header)
    if (other !== undefined) throw wrong(name, `must be another header than that of ${other}.`)
    seen.set(header, name)
  }
}

function refuseTwoTypes(fields: SchemeFields): void {
  if (fields.event_type_header && fields.event_type_json) {
    throw wrong('event_type_json', 'and event_type_header exclude each other.')
  }
}

/** With such a header as id, all deliveries would be one; as signature, it proves nothing. */
function refuseCommonHeaders(fields: SchemeFields): void {
  for (const name of HEADERS) {
    const header = fields[name]?.toLowerCase() ?? ''
    if (!COMMON.has(header)) continue
    throw wrong(name, `must be a header of this sender: every request has ${header}.`)
  }
}

const COMMON = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'transfer-encoding',
  'user-agent',
])

const HEADERS = ['header', 'timestamp_header', 'event_type_header', 'id_header'] as const

/** 422: hooks.md asks for it where a form has a wrong value. */
function wrong(name: string, message: string): Fault {
  return new Fault(422, 'UNPROCESSABLE', `${name} ${message}`, { field: name })
}
