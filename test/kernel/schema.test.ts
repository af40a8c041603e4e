import { t } from 'tap'
import Library from 'typebox'
import * as Type from '../../kernel/schema.ts'

const STRICT = { additionalProperties: false, description: 'a row' }

/** Each form that the program uses. */
function formsOf(T: typeof Type): Readonly<Record<string, Type.TSchema>> {
  const members = { id: T.Integer(), name: T.Optional(T.String()), at: T.Null() }
  return {
    anything: T.Unknown({ description: 'any' }),
    null: T.Null(),
    boolean: T.Boolean(),
    integer: T.Integer({ minimum: 1 }),
    number: T.Number({ maximum: 0.5 }),
    text: T.String(),
    'text with options': T.String({ pattern: '^a', maxLength: 9 }),
    'constant text': T.Literal('ok'),
    'constant number': T.Literal(2, { title: 'two' }),
    'constant boolean': T.Literal(true),
    enum: T.Enum(['a', 1], { type: 'string' }),
    union: T.Union([T.String(), T.Null()], { description: 'x' }),
    intersection: T.Intersect([T.Object(members), T.Object({})]),
    array: T.Array(T.Object(members), { maxItems: 3 }),
    record: T.Record(T.Integer(), { maxProperties: 2 }),
    'JSON Schema': T.Unsafe({ type: ['string'] }),
    object: T.Object(members, STRICT),
    'object without members': T.Object({}),
    'object with other options': T.Object(members, { required: ['id'] }),
    optional: T.Optional(T.String({ default: 'x' })),
    partial: T.Partial(T.Object(members, STRICT)),
    picked: T.Pick(T.Object(members, STRICT), ['name', 'id']),
    'picked optional members': T.Pick(T.Object(members), ['name']),
    omitted: T.Omit(T.Object(members, STRICT), ['at']),
    'members taken over': T.Object({
      ...T.Partial(T.Object(members)).properties,
      on: T.Boolean(),
    }),
  }
}

/** The library's functions. Its records take a schema of their names, too. */
const LIBRARY = {
  ...Library,
  Record: (value: Library.TSchema, options: { maxProperties: number }) =>
    Library.Record(Library.String(), value, options),
} as unknown as typeof Type

t.test('a schema is the same JSON Schema as the library makes, in the same order', async (t) => {
  const others = formsOf(LIBRARY)
  for (const [name, ours] of Object.entries(formsOf(Type))) {
    const theirs = others[name] ?? {}
    t.equal(JSON.stringify(ours), JSON.stringify(theirs), name)
    t.equal(Type.IsObject(ours), Library.IsObject(theirs), `${name}: whether it is an object`)
    t.equal('~optional' in ours, '~optional' in theirs, `${name}: whether it is optional`)
  }
})

t.test('an optional schema is a copy: others may use the schema as it is', async (t) => {
  const name = Type.String()
  const { required } = Type.Object({ a: name, b: Type.Optional(name) })
  t.same(required, ['a'])
})
