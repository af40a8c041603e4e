import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, one, sqlFile, Timestamp } from '../../sql-file.ts'
import { Link } from './links.ts'

/** A list: see `slugs_in_list` in the migrations. */
export type ListScope = 'owned' | 'mine' | 'primary' | 'co' | 'shared' | 'visible' | 'every'

/** The order of a list. */
export const ListOrder = Type.Enum(['slug', 'created', 'changed', 'clicks', 'last_click'])
export type ListOrder = Type.Static<typeof ListOrder>

/** A link that a search found: with its place in the order, the visitor's role, and its clicks. */
export const ListedLink = Type.Object({
  ...Link.properties,
  place: Type.Integer(),
  is_primary: Type.Boolean(),
  is_owner: Type.Boolean(),
  is_recipient: Type.Boolean(),
  clicks: Type.Integer(),
  clicked_at: nullable(Timestamp),
  /** The name of the primary owner. */
  owner_name: Type.String(),
})
export type ListedLink = Type.Static<typeof ListedLink>

/** A link that a visitor may have meant. */
export const Suggestion = Type.Pick(Link, ['slug', 'title'])
export type Suggestion = Type.Static<typeof Suggestion>

/** A list, and whose it is: the ids of a user and of groups. */
const list = { list: 'text', users: 'uuid[]' } as const

/** Where a search looks: see `searchLinks` in lists.sql. */
export type SearchSource = 'list' | 'order' | 'beginning' | 'texts'

export const listQueries = sqlFile('sql/links/names/lists.sql', {
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
    keys: 'jsonb',
    owner: 'uuid?',
    state: 'text',
    now: 'timestamptz',
    limit: 'int8',
  }),
  writeTexts: exec({ links: 'jsonb' }),
  listAddresses: many(Type.Pick(Link, ['slug', 'url']), { slugs: 'jsonb', limit: 'int8' }),
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
