import Type from 'typebox'
import { many, optional, sqlFile } from '../sql-file.ts'
import { Link } from './links.ts'

/** A list: see `slugs_in_list` in the migrations. */
export type ListScope = 'owned' | 'mine' | 'primary' | 'co' | 'shared' | 'visible' | 'every'

/** A link in a list of the pages: what the visitor is to it, and its clicks of the last days. */
export const ListedLink = Type.Object({
  ...Type.Pick(Link, ['id', 'slug', 'url', 'title', 'tags', 'visibility']).properties,
  is_primary: Type.Boolean(),
  is_owner: Type.Boolean(),
  is_recipient: Type.Boolean(),
  clicks: Type.Integer(),
})
export type ListedLink = Type.Static<typeof ListedLink>

/** A link that a visitor may have meant. */
export const Suggestion = Type.Pick(Link, ['slug', 'title'])
export type Suggestion = Type.Static<typeof Suggestion>

const list = { list: 'text', user: 'uuid?' } as const

export const listQueries = sqlFile('sql/links/lists.sql', {
  listLinks: many(Link, { ...list, tag: 'text', after: 'text', limit: 'int8' }),
  findWindowEnd: optional(Type.Pick(Link, ['slug']), {
    ...list,
    tag: 'text',
    after: 'text',
    until: 'text',
    rows: 'int8',
  }),
  searchLinks: many(ListedLink, {
    ...list,
    tag: 'text',
    after: 'text',
    until: 'text',
    visibility: 'text',
    but_prefix: 'text',
    patterns: 'jsonb',
    since: 'text',
    limit: 'int8',
  }),
  suggestLinks: many(Suggestion, { ...list, near: 'jsonb', prefix: 'text', limit: 'int8' }),
})
