import * as Type from '../../../kernel/schema.ts'
import { Timestamp, Uuid, exec, many, nullable, optional, sqlFile } from '../../sql-file.ts'

/**
 * Who may see a link: `public` everybody, `private` who has the slug, `secure` owners and
 * recipients.
 */
export const Visibility = Type.Enum(['public', 'private', 'secure'])
export type Visibility = Type.Static<typeof Visibility>

/** links.md section 2, an element of Link's `owners`. */
export const Owner = Type.Object({ id: Uuid, email: Type.String(), is_primary: Type.Boolean() })
export type Owner = Type.Static<typeof Owner>

/** What ends the visits of a link. */
export const Lifecycle = Type.Object({
  expires_at: nullable(Timestamp),
  max_visits: nullable(Type.Integer()),
  archived: Type.Boolean(),
})
export type Lifecycle = Type.Static<typeof Lifecycle>

/** links.md section 2, Link, with added fields: those of `visibility` to `aliases`. */
export const Link = Type.Object({
  id: Uuid,
  slug: Type.String(),
  url: Type.String(),
  title: Type.String(),
  description: Type.String(),
  tags: Type.Array(Type.String()),
  owners: Type.Array(Owner),
  visibility: Visibility,
  append_path: Type.Boolean({
    description: 'Whether further path segments of a visit are appended to the url.',
  }),
  ...Lifecycle.properties,
  aliases: Type.Array(Type.String(), {
    description: 'Further names that lead where the slug does',
  }),
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Link = Type.Static<typeof Link>

/** A link with the number of its clicks, and what the caller is to it. */
export const LinkAccess = Type.Object({
  ...Link.properties,
  clicks: Type.Integer(),
  is_owner: Type.Boolean(),
  is_recipient: Type.Boolean(),
})
export type LinkAccess = Type.Static<typeof LinkAccess>

const Slug = Type.Pick(Link, ['slug'])

const fields = {
  url: 'text',
  title: 'text',
  description: 'text',
  visibility: 'text',
  append_path: 'bool',
  expires_at: 'timestamptz?',
  max_visits: 'int8?',
  archived: 'bool',
  at: 'timestamptz',
} as const

export const linkQueries = sqlFile('sql/links/names/links.sql', {
  findLink: optional(LinkAccess, { id: 'uuid', users: 'uuid[]' }),
  findLinkBySlug: optional(LinkAccess, { slug: 'text', users: 'uuid[]' }),
  listTakenSlugs: many(Slug, { slugs: 'jsonb', limit: 'int8' }),
  lockLink: optional(Slug, { id: 'uuid' }),
  addLink: optional(Type.Pick(Link, ['id']), { slug: 'text', names: 'jsonb', ...fields }),
  updateLink: exec({ id: 'uuid', ...fields }),
  writeWords: exec({ links: 'jsonb' }),
  lockLoops: exec({}),
  announceLinks: exec({ slugs: 'jsonb' }),
})
