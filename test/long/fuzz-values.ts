import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import type { TSchema } from '../../kernel/schema.ts'

/** Must be escaped wherever a page shows it. */
export const MARKER = `<x-fuzz-1"'>`

type OddValues = {
  /** Texts that programs often handle wrongly. */
  texts: readonly string[]
  /** After a path: broken encodings, other paths. */
  endings: readonly string[]
  /** Bodies of the wrong shape or encoding. */
  bodies: readonly string[]
  /** Headers that change an answer, and values that no client means. */
  headerNames: readonly string[]
  headerValues: readonly string[]
}
const FILE = join(import.meta.dirname, '../fixtures/odd-values.json')
export const ODD: OddValues = JSON.parse(readFileSync(FILE, 'utf8'))
const MORE_TEXTS = [MARKER, `javascript:alert(1)//${MARKER}`, 'x'.repeat(2_049)]

export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...ODD.texts, ...MORE_TEXTS) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
)

/** A position as lists encode it, of this list or of another one. */
export const oddCursor: fc.Arbitrary<string> = fc
  .oneof(
    fc.tuple(oddText, fc.constantFrom('links', 'tags', 'users')),
    fc.tuple(oddText, fc.constantFrom('', 'links'), fc.maxSafeInteger()),
    fc.tuple(fc.constantFrom(0, 253_402_300_799_999, 1e308), fc.maxSafeInteger()),
    fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }),
  )
  .map((position) => Buffer.from(JSON.stringify(position)).toString('base64url'))

/** Values for members of a name that fit more than the schema says, such as ids that exist. */
export type Known = Record<string, fc.Arbitrary<unknown>>

/** The keywords of JSON Schema that values are made from. */
export type Shape = {
  type?: string
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly TSchema[]
  properties?: Record<string, TSchema>
  required?: readonly string[]
  items?: TSchema
  minItems?: number
  maxItems?: number
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
}

/** Values that fit a schema, those at its limits among them. */
export function valid(schema: TSchema, known: Known): fc.Arbitrary<unknown> {
  const shape: Shape = schema
  if ('const' in shape) return fc.constant(shape.const)
  if (shape.enum !== undefined) return fc.constantFrom(...shape.enum)
  if (shape.anyOf !== undefined) return fc.oneof(...shape.anyOf.map((one) => valid(one, known)))
  switch (shape.type) {
    case 'object':
      return validObject(shape, known)
    case 'array': {
      const { items = { type: 'string' }, minItems: minLength = 0, maxItems = 3 } = shape
      return fc.array(valid(items, known), {
        minLength,
        maxLength: Math.max(minLength, Math.min(maxItems, 3)),
      })
    }
    case 'string':
      return validText(shape)
    case 'integer':
      return fc.oneof(
        fc.integer(rangeOf(shape)),
        fc.constantFrom(...Object.values(rangeOf(shape))),
      )
    case 'number':
      return fc.double({ ...rangeOf(shape), noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

function validObject({ properties = {}, required = [] }: Shape, known: Known) {
  const members = Object.entries(properties).map(
    ([name, schema]) =>
      [
        name,
        'const' in schema ? valid(schema, known) : (known[name] ?? valid(schema, known)),
      ] as const,
  )
  return fc.record(Object.fromEntries(members), { requiredKeys: [...required] })
}

function validText({ pattern, format, minLength = 0, maxLength = 60 }: Shape) {
  if (format === 'uuid') return fc.uuid()
  if (format === 'date-time') {
    return fc.constantFrom('2099-01-31T12:00:00.000Z', '2026-01-01T00:00:00Z')
  }
  if (format === 'date') return fc.constantFrom('2026-01-31', '2099-12-01')
  const fits = (text: string) => text.length >= minLength && text.length <= maxLength
  if (pattern !== undefined) {
    return fc.stringMatching(new RegExp(pattern), { maxLength: 60 }).filter(fits)
  }
  const limits = [minLength, Math.min(maxLength, 200_000)].map((length) => 'x'.repeat(length))
  const texts = ['text', `a ${MARKER} b`].filter(fits)
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...limits, ...texts, ...texts) },
    {
      weight: 1,
      arbitrary: fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 60)) }),
    },
  )
}

function rangeOf({ minimum: min = 0, maximum: max = 10_000 }: Shape) {
  return { min, max }
}

/** Values that a member may not have: of another type, or just beyond its limits. */
function wrongValues(schema: TSchema | undefined) {
  const {
    minLength = 0,
    maxLength,
    minimum,
    maximum,
    maxItems,
    enum: values,
  }: Shape = schema ?? {}
  return [
    null,
    true,
    0,
    -1,
    1.5,
    2_147_483_648,
    2 ** 53,
    1e308,
    '',
    'x',
    [],
    {},
    [null],
    [[]],
    ...(minLength > 1 ? ['x'.repeat(minLength - 1)] : []),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1), 'é'.repeat(maxLength + 1)]),
    ...(minimum === undefined ? [] : [minimum - 1, minimum - 0.5]),
    ...(maximum === undefined ? [] : [maximum + 1, String(maximum)]),
    ...(maxItems === undefined ? [] : [Array.from({ length: maxItems + 1 }, (_, n) => `t${n}`)]),
    ...(values === undefined ? [] : [values[0] === undefined ? 'x' : `${String(values[0])}x`]),
  ]
}

/** A valid object with a member missing, wrong or odd, in it or in an object inside, or with one more. */
export function nearlyValid(schema: TSchema, known: Known): fc.Arbitrary<object> {
  const { properties = {}, anyOf }: Shape = schema
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => nearlyValid(one, known)))
  const wrong = fc.constantFrom(...Object.keys(properties), 'odd', '__proto__').chain((name) => {
    const member = properties[name]
    const value = hasMembers(member)
      ? nearlyValid(member, known)
      : fc.oneof(fc.constantFrom(undefined, ...wrongValues(member)), oddText)
    return value.map((one) => ({ [name]: one }))
  })
  return fc.tuple(valid(schema, known), wrong).map(([good, bad]) => ({ ...Object(good), ...bad }))
}

/** Whether it is an object with members, or one of several such objects. */
export function hasMembers(schema: TSchema | undefined): schema is TSchema {
  const { properties, anyOf }: Shape = schema ?? {}
  return properties !== undefined || (anyOf !== undefined && anyOf.every(hasMembers))
}
