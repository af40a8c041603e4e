import fc from 'fast-check'
import type { TSchema } from 'typebox'

/** Stands in every kind of text; as it is, it may stand in no page. */
export const MARKER = `<x-fuzz-1"'>`

/** Texts at which programs stumble. Without what no UTF-8 can say: that is in `ODD_BYTES`. */
const ODD_TEXTS: readonly string[] = [
  '',
  ' ',
  '\t\n',
  '0',
  '-1',
  '1.5',
  '1e999',
  'NaN',
  '9007199254740993',
  '99999999999999999999',
  'null',
  'true',
  'undefined',
  '__proto__',
  'constructor',
  '\0',
  'a\0b',
  '\r\nx-fuzz-injected: 1',
  MARKER,
  `"><img src=x onerror=alert(1)>${MARKER}`,
  'javascript:alert(1)//' + MARKER,
  '${7*7}{{7*7}}',
  "' or 1=1 --",
  '%',
  '%00',
  '%2e%2e%2f',
  '../../etc/passwd',
  '\\',
  '*',
  '_',
  '%_%',
  '\u202Egpj.exe',
  'שלום עולם',
  'é\u0301\u0327',
  '😀'.repeat(60),
  '\uFEFF',
  '\uFFFF',
  '\u2028',
  'İ',
  'ß',
  'x'.repeat(65),
  'x'.repeat(2_049),
  'é'.repeat(201),
  '2026-02-30T25:61:00Z',
  '+275760-09-13T00:00:00.001Z',
  '-271821-04-20T00:00:00Z',
  '0001-01-01T00:00:00Z',
  'http://127.0.0.1:1/',
  'https://user:pw@127.0.0.1/',
  'http://[::1',
  '[]',
  '{}',
]
const lone = fc.constantFrom('\uD800', 'a\uDC00b', '\uDFFF\uD800')

/** Text of any kind; with lone surrogates where its carrier can say them (JSON escapes). */
export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...ODD_TEXTS) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 20 }).map((text) => MARKER + text) },
)

/** Parts of a request line as they stand there, right or broken. */
export const ODD_ENCODED: readonly string[] = [
  '%',
  '%zz',
  '%ff',
  '%c0%af',
  '%ed%a0%80',
  '%00',
  'a%00b',
  '%2f',
  '%2F..%2f',
  '.',
  '..',
  '%2e%2e',
  '%5c',
  '%0d%0ax-fuzz-injected:1',
  '\u00e9',
  '%3Cx-fuzz-1%22%27%3E',
  `<x-fuzz-1"'>`,
  ';a=b',
  '+',
  '%20',
  '~',
  'x'.repeat(300),
  'x'.repeat(9_000),
  '%F0%9F%98%80'.repeat(40),
]

const numbers = fc.constantFrom<unknown>(
  ...[0, -0, 1, -1, 2, 0.1, 1.5, 200, 201, 1_000, 2_147_483_647, 2_147_483_648],
  ...[Number.MAX_SAFE_INTEGER, 2 ** 53, 1e308, -1e308, 5e-324],
)

/** A value of any JSON type. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: oddText },
  { weight: 1, arbitrary: lone },
  { weight: 2, arbitrary: numbers },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null]) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
)

/** A cursor as lists make them, of a position in it or of one that is none. */
export const oddCursor: fc.Arbitrary<string> = fc
  .oneof(
    fc.tuple(fc.oneof(oddText, lone), fc.constantFrom('links', 'tags', 'users')),
    fc.tuple(fc.constantFrom('prefix', 'rest'), fc.oneof(oddText, lone)),
    fc.tuple(fc.constantFrom(0, 253_402_300_799_999, 1e308), fc.maxSafeInteger()),
    fc.tuple(fc.maxSafeInteger()),
    fc.array(oddValue, { maxLength: 3 }),
  )
  .map((position) => Buffer.from(JSON.stringify(position)).toString('base64url'))

/** Values that are right for a member of this name, whatever stands in the schema. */
export type Known = Readonly<Record<string, fc.Arbitrary<unknown>>>

/** What a schema may say that a value is made from. */
type Shape = {
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly TSchema[]
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
  readonly items?: TSchema
  readonly minItems?: number
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
}

/** Values that fit a schema, those at its bounds among them. */
export function fitting(schema: TSchema, known: Known): fc.Arbitrary<unknown> {
  const shape: Shape = schema
  if (shape.const !== undefined) return fc.constant(shape.const)
  if (shape.enum !== undefined) return fc.constantFrom(...shape.enum)
  if (shape.anyOf !== undefined) return fc.oneof(...shape.anyOf.map((one) => fitting(one, known)))
  switch (shape.type) {
    case 'object':
      return fittingObject(shape, known)
    case 'array': {
      const items = shape.items === undefined ? oddValue : fitting(shape.items, known)
      return fc.array(items, { minLength: shape.minItems ?? 0, maxLength: 3 })
    }
    case 'string':
      return fittingText(shape)
    case 'integer':
    case 'number':
      return fittingNumber(shape)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

function fittingObject({ properties = {}, required = [] }: Shape, known: Known) {
  const members = Object.entries(properties).map(
    ([name, schema]) => [name, known[name] ?? fitting(schema, known)] as const,
  )
  return fc.record(Object.fromEntries(members), { requiredKeys: [...required] })
}

function fittingText({ pattern, minLength = 0, maxLength = 40 }: Shape): fc.Arbitrary<string> {
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern), { maxLength: 60 })
  const most = 'x'.repeat(Math.min(maxLength, 200_000))
  const some = fc.string({ minLength, maxLength: Math.min(maxLength, 60) })
  const plain = fc.constantFrom('text', `a ${MARKER} b`).filter((one) => one.length <= maxLength)
  return fc.oneof(
    { weight: 4, arbitrary: plain },
    some,
    fc.constantFrom(most, 'x'.repeat(minLength)),
  )
}

function fittingNumber({ type, minimum, maximum }: Shape): fc.Arbitrary<number> {
  const [min, max] = [minimum ?? 0, maximum ?? 10_000]
  return type === 'integer'
    ? fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max))
    : fc.oneof(fc.double({ min, max, noNaN: true }), fc.constantFrom(min, max))
}

/** Values like those that fit, with something about them changed; mostly of one member. */
export function unfit(good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const changed = fc.tuple(good, fc.nat(20), oddValue, fc.nat(3)).map(([value, at, odd, how]) => {
    if (typeof value !== 'object' || value === null) return odd
    const members: [string, unknown][] = Object.entries(value)
    const [name] = members[at % Math.max(1, members.length)] ?? ['odd']
    if (how === 0) return Object.fromEntries(members.filter(([other]) => other !== name))
    if (how === 1) return Object.fromEntries([...members, [`${name}2`, odd], ['__proto__', odd]])
    return Object.fromEntries([...members.filter(([other]) => other !== name), [name, odd]])
  })
  return fc.oneof({ weight: 6, arbitrary: changed }, { weight: 1, arbitrary: oddValue })
}
