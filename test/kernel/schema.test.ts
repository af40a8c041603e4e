import { t } from 'tap'
import Library from 'typebox'
import * as Type from '../../kernel/schema.ts'

const MEMBERS = { id: Type.Integer(), name: Type.Optional(Type.String()), at: Type.Null() }
const SAME = {
  id: Library.Integer(),
  name: Library.Optional(Library.String()),
  at: Library.Null(),
}
const STRICT = { additionalProperties: false, description: 'a row' }

/** Each form that the program uses: ours, and the library's. */
const FORMS: Readonly<Record<string, readonly [ours: Type.TSchema, theirs: Type.TSchema]>> = {
  anything: [Type.Unknown({ description: 'any' }), Library.Unknown({ description: 'any' })],
  null: [Type.Null(), Library.Null()],
  boolean: [Type.Boolean(), Library.Boolean()],
  integer: [Type.Integer({ minimum: 1 }), Library.Integer({ minimum: 1 })],
  number: [Type.Number({ maximum: 0.5 }), Library.Number({ maximum: 0.5 })],
  text: [Type.String(), Library.String()],
  'text with options': [
    Type.String({ pattern: '^a', maxLength: 9 }),
    Library.String({ pattern: '^a', maxLength: 9 }),
  ],
  'constant text': [Type.Literal('ok'), Library.Literal('ok')],
  'constant number': [Type.Literal(2, { title: 'two' }), Library.Literal(2, { title: 'two' })],
  'constant boolean': [Type.Literal(true), Library.Literal(true)],
  enum: [Type.Enum(['a', 1], { type: 'string' }), Library.Enum(['a', 1], { type: 'string' })],
  union: [
    Type.Union([Type.String(), Type.Null()], { description: 'x' }),
    Library.Union([Library.String(), Library.Null()], { description: 'x' }),
  ],
  intersection: [
    Type.Intersect([Type.Object(MEMBERS), Type.Object({})]),
    Library.Intersect([Library.Object(SAME), Library.Object({})]),
  ],
  array: [
    Type.Array(Type.Object(MEMBERS), { maxItems: 3 }),
    Library.Array(Library.Object(SAME), { maxItems: 3 }),
  ],
  record: [
    Type.Record(Type.Integer(), { maxProperties: 2 }),
    Library.Record(Library.String(), Library.Integer(), { maxProperties: 2 }),
  ],
  'JSON Schema': [Type.Unsafe({ type: ['string'] }), Library.Unsafe({ type: ['string'] })],
  object: [Type.Object(MEMBERS, STRICT), Library.Object(SAME, STRICT)],
  'object without members': [Type.Object({}), Library.Object({})],
  'object with other options': [
    Type.Object(MEMBERS, { required: ['id'] }),
    Library.Object(SAME, { required: ['id'] }),
  ],
  optional: [
    Type.Optional(Type.String({ default: 'x' })),
    Library.Optional(Library.String({ default: 'x' })),
  ],
  partial: [
    Type.Partial(Type.Object(MEMBERS, STRICT)),
    Library.Partial(Library.Object(SAME, STRICT)),
  ],
  picked: [
    Type.Pick(Type.Object(MEMBERS, STRICT), ['name', 'id']),
    Library.Pick(Library.Object(SAME, STRICT), ['name', 'id']),
  ],
  'picked optional members': [
    Type.Pick(Type.Object(MEMBERS), ['name']),
    Library.Pick(Library.Object(SAME), ['name']),
  ],
  omitted: [
    Type.Omit(Type.Object(MEMBERS, STRICT), ['at']),
    Library.Omit(Library.Object(SAME, STRICT), ['at']),
  ],
  'members taken over': [
    Type.Object({ ...Type.Partial(Type.Object(MEMBERS)).properties, on: Type.Boolean() }),
    Library.Object({
      ...Library.Partial(Library.Object(SAME)).properties,
      on: Library.Boolean(),
    }),
  ],
}

t.test('a schema is the same JSON Schema as the library makes, in the same order', async (t) => {
  for (const [name, [ours, theirs]] of Object.entries(FORMS)) {
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
