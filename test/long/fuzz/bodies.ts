import fc from 'fast-check'
import type { Operation } from '../../../kernel/openapi.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { nameOf, type FuzzProfile } from './profile.ts'
import { fitting, oddText, unfit } from './values.ts'
import { FRAMINGS, type Framing } from './wire.ts'

/** A body with what is said of it. Text holds names of things that exist, bytes do not. */
export type BodyPart = {
  readonly type: string | undefined
  readonly body: string | Buffer | undefined
  readonly framing: Framing
}

const JSON_TYPE = 'application/json'
const FORM_TYPE = 'application/x-www-form-urlencoded'
const NONE: BodyPart = { type: undefined, body: undefined, framing: 'length' }

const oddType = fc.constantFrom<string | undefined>(
  ...[undefined, '', JSON_TYPE, FORM_TYPE, 'application/JSON; charset=utf-16', 'text/plain'],
  ...['multipart/form-data; boundary=x', 'application/json\u00e9', ';', 'x'.repeat(300)],
)

/** Bodies that nobody means: no text, too deep, too large, said twice. */
const oddBody: fc.Arbitrary<string | Buffer> = fc.oneof(
  { weight: 8, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 12,
    arbitrary: fc.constantFrom<string | Buffer>(
      ...['', ' ', '{', '[]', 'null', '"text"', '1e999', '\uFEFF{}', '{"a":1,"a":2}', '{"a":1}x'],
      ...['[', '{"a":'].map((open) => open.repeat(50_000)),
      ...['%', 'a=%zz&b=%ff', '&&&==', 'name', 'a=1&a=2&a=3', '--x\r\n\r\n--x--'],
      ...[Buffer.from('{"a":"\xff\xfe"}', 'latin1'), Buffer.from('{}', 'utf16le')],
    ),
  },
  // Over the limits of forms and of JSON.
  { weight: 1, arbitrary: fc.constantFrom(70_000, 1_200_000).map((size) => 'x'.repeat(size)) },
)

const framing: fc.Arbitrary<Framing> = fc.oneof(
  { weight: 14, arbitrary: fc.constantFrom<Framing>('length', 'length', 'chunked') },
  { weight: 1, arbitrary: fc.constantFrom(...FRAMINGS) },
)

/** The body that a route takes, as it should be. */
export function fittingBody(route: Route, profile: FuzzProfile): fc.Arbitrary<BodyPart> {
  const own = profile.bodies[nameOf(route)]
  const { body: schema, bodyTypes }: Partial<Operation> = route
  if (route.method === 'GET' || route.method === 'DELETE') return fc.constant(NONE)
  if (own !== undefined) return ofType(own, JSON_TYPE)
  if (schema !== undefined && bodyTypes === undefined)
    return ofType(json(schema, profile), JSON_TYPE)
  const fields = profile.forms[nameOf(route)]
  if (fields === undefined) return fc.constant(NONE)
  const required = fields.filter((name) => !name.endsWith('?'))
  const values = fields.map((field) => {
    const name = field.replace(/\?$/, '')
    return [name, (profile.known[name] ?? oddText).map(String)] as const
  })
  return ofType(
    fc.record(Object.fromEntries(values), { requiredKeys: required }).map(form),
    FORM_TYPE,
  )
}

/** A body of any kind, most often one that a route could take. */
export function wildBody(route: Route, profile: FuzzProfile): fc.Arbitrary<BodyPart> {
  const good = fittingBody(route, profile)
  const { body: schema }: Partial<Operation> = route
  const wrong =
    schema === undefined
      ? oddForm(profile.forms[nameOf(route)] ?? ['a'])
      : unfit(fitting(schema, profile.known)).map((value) => JSON.stringify(value) ?? '')
  const type = schema === undefined ? FORM_TYPE : JSON_TYPE
  return fc.oneof(
    { weight: 5, arbitrary: good },
    { weight: 6, arbitrary: ofType(wrong, type) },
    { weight: 1, arbitrary: fc.record({ type: oddType, body: wrong, framing }) },
    { weight: 1, arbitrary: fc.record({ type: oddType, body: oddBody, framing }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant(type), body: oddBody, framing }) },
    { weight: 1, arbitrary: fc.constant(NONE) },
  )
}

function ofType(body: fc.Arbitrary<string | Buffer>, type: string): fc.Arbitrary<BodyPart> {
  return fc.record({ type: fc.constant(type), body, framing: fc.constant('length' as const) })
}

function json(
  schema: NonNullable<Operation['body']>,
  { known }: FuzzProfile,
): fc.Arbitrary<string> {
  return fitting(schema, known).map((value) => JSON.stringify(value))
}

function form(values: Readonly<Record<string, string>>): string {
  return pairs(Object.entries(values))
}

/** Fields of a form with values that are wrong, and fields that are none. */
function oddForm(fields: readonly string[]): fc.Arbitrary<string> {
  const names = fc.constantFrom(...fields.map((name) => name.replace(/\?$/, '')), 'odd', '')
  return fc.array(fc.tuple(names, oddText), { maxLength: 6 }).map(pairs)
}

/** As forms and queries are written. */
export function pairs(values: readonly (readonly [string, string])[]): string {
  return values.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
}

/** Percent-encoded; a lone surrogate becomes what UTF-8 has for it. */
export function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}
