import fc from 'fast-check'

/** What a writer says of a link. */
export type Fields = {
  slug: string
  url: string
  title?: string | undefined
  description?: string | undefined
  tags?: readonly string[] | undefined
  visibility?: string | undefined
  expires_at?: string | null | undefined
  max_visits?: number | null | undefined
  archived?: boolean | null | undefined
}

/** One field of a body that is wrong, and the code that says so. */
export type Wrong = { field: string; value: unknown; code: string }

/** The ETag that the link's last answer had, that of no link, or any. */
export type IfMatch = 'seen' | 'other' | '*'

type Listed = 'links' | 'adminLinks' | 'adminUsers' | 'tags'

/** A call of the API with the ids that it names. */
export type Call =
  | { op: 'me' | 'tokens' }
  | { op: Listed; limit: number }
  | { op: 'tagLinks'; tag: string; limit: number }
  | { op: 'create'; fields: Fields; wrong: Wrong | undefined }
  | {
      op: 'put'
      link: string
      fields: Fields
      wrong: Wrong | undefined
      ifMatch: IfMatch | undefined
    }
  | { op: 'delete'; link: string; ifMatch: IfMatch | undefined }
  | { op: 'get' | 'owners' | 'shares' | 'restore'; link: string }
  | { op: 'addOwner' | 'addShare' | 'handOver'; link: string; email: unknown }
  | { op: 'removeOwner' | 'removeShare'; link: string; user: string }
  | { op: 'role'; user: string; role: string }
  | {
      op: 'makeToken'
      body: { name: string; scope?: string; expires_at?: string }
      wrong: Wrong | undefined
    }
  | { op: 'revoke'; token: string }
  | { op: 'visit'; slug: string }

/**
 * A call by a person with one of that person's tokens (`none`, `wrong`: without a good one; a number:
 * one that was made on the way). Where a call names ids, a step names slugs and people.
 */
export type Step = { by: string; with: string | number; call: Call }

export const PEOPLE = ['ann', 'bob', 'cyd', 'root'] as const
/** Of tokens that are made on the way. */
export const TOKEN_NAMES: readonly string[] = ['laptop', 'pipeline']
export const SLUGS = ['aa', 'bb', 'cc'] as const
/** Stands for the service's own address in urls. */
export const OWN = 'own.invalid'
export const UNKNOWN = '00000000-0000-4000-8000-000000000000'

const slug = fc.constantFrom(...SLUGS)
const tag = fc.constantFrom('red', 'Red', 'red', 'a b', 'a_b')
const person = fc.constantFrom(...PEOPLE)
const limit = fc.constantFrom(1, 2, 3, 50, 1000)
/** Mostly of a link that exists or did; sometimes of none, or no id at all. */
const link = fc.oneof({ weight: 12, arbitrary: slug }, fc.constantFrom(UNKNOWN, 'no-id', '1'))
const user = fc.oneof({ weight: 12, arbitrary: person }, fc.constantFrom(UNKNOWN, 'no-id'))
const email = fc.oneof(
  { weight: 10, arbitrary: person.map((name) => `${name}@example.com`) },
  fc.constantFrom('ANN@Example.COM', 'nobody@example.com', 'nobody', '', null, 7, undefined),
)

const url = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('https://one.test/', 'http://two/x?y=1#z') },
  { weight: 1, arbitrary: slug.map((name) => `http://${OWN}/${name}`) },
)
const members = {
  slug,
  url,
  title: fc.constantFrom('', 'Title', '<b>&amp;\n', 'x'.repeat(200), '😀'.repeat(200)),
  description: fc.constantFrom('', 'Text', 'x'.repeat(2000)),
  tags: fc.array(tag, { maxLength: 4 }),
  visibility: fc.constantFrom('public', 'private', 'secure'),
  expires_at: fc.constantFrom('2099-01-31T12:00:00.000Z', null),
  // Fewer would be used up at a time that the model does not know.
  max_visits: fc.constantFrom(1_000_000, null),
  archived: fc.constantFrom(true, false, null),
}
/** Mostly with all fields: what is omitted hides what the others do. */
const fields: fc.Arbitrary<Fields> = fc.oneof(
  { weight: 2, arbitrary: fc.record(members) },
  { weight: 1, arbitrary: fc.record(members, { requiredKeys: ['slug', 'url'] }) },
)

const wrongField: readonly (readonly [string, unknown, string])[] = [
  ['url', undefined, 'BAD_REQUEST'],
  ['url', 7, 'BAD_REQUEST'],
  ['url', 'ftp://one.test/', 'INVALID_URL'],
  ['url', 'https://me:secret@one.test/', 'INVALID_URL'],
  ['url', 'one.test', 'INVALID_URL'],
  ['title', 'x'.repeat(201), 'INVALID_FIELD_LENGTH'],
  ['title', ['x'], 'BAD_REQUEST'],
  ['description', 'x'.repeat(2001), 'INVALID_FIELD_LENGTH'],
  ['tags', ['red', '!'], 'INVALID_TAG'],
  ['tags', ['x'.repeat(51)], 'INVALID_TAG'],
  ['tags', 'red', 'BAD_REQUEST'],
  ['tags', Array.from({ length: 21 }, (_, n) => `t${n}`), 'TOO_MANY_TAGS'],
  ['visibility', 'hidden', 'INVALID_VISIBILITY'],
  ['expires_at', '2001-01-31T12:00:00Z', 'BAD_REQUEST'],
  ['expires_at', '2099-01-31', 'BAD_REQUEST'],
  ['max_visits', 0, 'BAD_REQUEST'],
  ['max_visits', '7', 'BAD_REQUEST'],
  ['archived', 'true', 'BAD_REQUEST'],
]
const wrongSlug: typeof wrongField = [
  ['slug', undefined, 'BAD_REQUEST'],
  ['slug', 'a', 'INVALID_SLUG'],
  ['slug', 'aa-', 'INVALID_SLUG'],
  ['slug', 'Aa', 'INVALID_SLUG'],
  ['slug', 'x'.repeat(65), 'INVALID_SLUG'],
  ['slug', 'admin', 'RESERVED_SLUG'],
]
const wrongToken: typeof wrongField = [
  ['name', undefined, 'BAD_REQUEST'],
  ['name', '', 'BAD_REQUEST'],
  ['scope', 'all', 'BAD_REQUEST'],
  ['expires_at', '2001-01-01T00:00:00Z', 'BAD_REQUEST'],
]

/** Seldom wrong, and then in one field: which of two wrong ones is named is nobody's business. */
function wrong(...choices: typeof wrongField): fc.Arbitrary<Wrong | undefined> {
  const bad = fc.constantFrom(...choices).map(([field, value, code]) => ({ field, value, code }))
  return fc.option(bad, { freq: 6, nil: undefined })
}

function op<const Name extends string>(...names: readonly Name[]): fc.Arbitrary<Name> {
  return fc.constantFrom(...names)
}

const ifMatch: fc.Arbitrary<IfMatch | undefined> = fc.constantFrom(
  ...([undefined, undefined, 'seen', 'seen', 'other', '*'] as const),
)

const tokenBody = fc.record(
  {
    name: fc.constantFrom(...TOKEN_NAMES),
    scope: fc.constantFrom('full', 'read', 'create'),
    expires_at: fc.constant('2099-01-31T12:00:00.000Z'),
  },
  { requiredKeys: ['name'] },
)

const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ op: op('create'), fields, wrong: wrong(...wrongSlug, ...wrongField) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ op: op('put'), link, fields, wrong: wrong(...wrongField), ifMatch }),
  },
  { weight: 2, arbitrary: fc.record({ op: op('delete'), link, ifMatch }) },
  { weight: 4, arbitrary: fc.record({ op: op('get', 'owners', 'shares'), link }) },
  { weight: 2, arbitrary: fc.record({ op: op('restore'), link }) },
  { weight: 8, arbitrary: fc.record({ op: op('addOwner', 'addShare'), link, email }) },
  { weight: 3, arbitrary: fc.record({ op: op('handOver'), link, email }) },
  { weight: 7, arbitrary: fc.record({ op: op('removeOwner', 'removeShare'), link, user }) },
  {
    weight: 4,
    arbitrary: fc.record({ op: op('links', 'adminLinks', 'adminUsers', 'tags'), limit }),
  },
  { weight: 3, arbitrary: fc.record({ op: op('tags'), limit }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: op('tagLinks'),
      tag: fc.constantFrom('red', 'red', 'a-b', 'nope'),
      limit,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: op('role'), user, role: op('user', 'admin', 'admin', 'boss') }),
  },
  { weight: 2, arbitrary: fc.record({ op: op('visit'), slug }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: op('makeToken'), body: tokenBody, wrong: wrong(...wrongToken) }),
  },
  { weight: 1, arbitrary: fc.record({ op: op('revoke'), token: op('0', '1', UNKNOWN, 'no-id') }) },
  { weight: 1, arbitrary: fc.record({ op: op('me', 'tokens') }) },
)

const credential = fc.oneof(
  { weight: 14, arbitrary: fc.constant('full') },
  { weight: 3, arbitrary: fc.constantFrom('read', 'create') },
  { weight: 2, arbitrary: fc.constantFrom(0, 1) },
  { weight: 1, arbitrary: fc.constantFrom('none', 'wrong') },
)

/** Links to begin with, so that most calls find something. */
const opening: fc.Arbitrary<readonly Step[]> = fc
  .uniqueArray(fields, { maxLength: SLUGS.length, selector: (link) => link.slug })
  .chain((links) =>
    fc.tuple(...links.map((link) => fc.record({ by: person, fields: fc.constant(link) }))),
  )
  .map((made) =>
    made.map(({ by, fields: link }) => ({
      by,
      with: 'full',
      call: { op: 'create', fields: link, wrong: undefined },
    })),
  )

/** An admin may do anything, so that more comes of it. */
const caller = fc.oneof(
  { weight: 2, arbitrary: person },
  { weight: 1, arbitrary: fc.constant('root') },
)
const step: fc.Arbitrary<Step> = fc.record({ by: caller, with: credential, call })

/** Sequences of steps, long enough to fill lists and short enough to be read when one fails. */
export const sequences: fc.Arbitrary<readonly Step[]> = fc
  .tuple(opening, fc.array(step, { minLength: 1, maxLength: 50, size: 'max' }))
  .map(([first, then]) => [...first, ...then])
