import Type from 'typebox'
import { exec, many, one, sqlFile } from '../sql-file.ts'
import { Link } from './links.ts'

/** A list: see `slugs_in_list` in the migrations. */
export type ListScope = 'owned' | 'mine' | 'primary' | 'co' | 'shared' | 'visible' | 'every'

/** The order of a list: '' is by slug. */
export const ListOrder = Type.Enum(['', 'clicks', 'created', 'changed'])
export type ListOrder = Type.Static<typeof ListOrder>

/**
 * A link in a list of the pages. It has the visitor's role, the beginning of its description, the
 * address of its primary owner, and its clicks.
 */
export const ListedLink = Type.Object({
  ...Type.Omit(Link, ['owners', 'append_path', 'aliases']).properties,
  place: Type.Integer(),
  owner: Type.String(),
  is_primary: Type.Boolean(),
  is_owner: Type.Boolean(),
  is_recipient: Type.Boolean(),
  clicks: Type.Integer(),
})
export type ListedLink = Type.Static<typeof ListedLink>

/** A link that a visitor may have meant. */
export const Suggestion = Type.Pick(Link, ['slug', 'title'])
export type Suggestion = Type.Static<typeof Suggestion>

/** A list, and whose it is: the ids of a user and of groups. */
const list = { list: 'text', users: 'uuid[]' } as const

/** Where a search looks: see `searchLinks` in lists.sql. */
export type SearchSource = 'list' | 'beginning' | 'texts'

export const listQueries = sqlFile('sql/links/lists.sql', {
  listLinks: many(Link, { ...list, tag: 'text', after: 'text', limit: 'int8' }),
  countLinks: one(Type.Object({ links: Type.Integer() }), { ...list, tag: 'text', max: 'int8' }),
  searchLinks: many(ListedLink, {
    ...list,
    source: 'text',
    tag: 'text',
    sort: 'text',
    beginning: 'text',
    start: 'text',
    only_beginning: 'bool',
    place: 'int8',
    after: 'text',
    rows: 'int8',
    visibility: 'text',
    texts: 'jsonb',
    indexed: 'jsonb',
    addresses: 'jsonb',
    owners: 'jsonb',
    tags: 'jsonb',
    limit: 'int8',
  }),
  writeTexts: exec({ slugs: 'jsonb' }),
  suggestLinks: many(Suggestion, {
    ...list,
    folded: 'text',
    near: 'jsonb',
    prefix: 'text',
    word: 'text',
    patterns: 'jsonb',
    last: 'text',
    now: 'timestamptz',
    limit: 'int8',
  }),
})
