import Type from 'typebox'
import { Timestamp, Uuid } from '../rows.ts'

/** Who may see a link: `public` everybody, `private` who has the slug, `secure` owners and recipients. */
export const Visibility = Type.Union([
  Type.Literal('public'),
  Type.Literal('private'),
  Type.Literal('secure'),
])
export type Visibility = Type.Static<typeof Visibility>

/** links.md section 2, an element of Link's `owners`. */
export const Owner = Type.Object({ id: Uuid, email: Type.String(), is_primary: Type.Boolean() })
export type Owner = Type.Static<typeof Owner>

/** links.md section 2, Link, with the added fields `visibility` and `append_path`. */
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
  created_at: Timestamp,
  updated_at: Timestamp,
})
export type Link = Type.Static<typeof Link>

export const LinkAccess = Type.Object({
  ...Link.properties,
  is_owner: Type.Boolean(),
  is_recipient: Type.Boolean(),
})
/** A link, and what the caller is to it. */
export type LinkAccess = Type.Static<typeof LinkAccess>

export const ListedLink = Type.Object({
  ...Type.Pick(Link, ['id', 'slug', 'url', 'title', 'tags', 'visibility']).properties,
  is_primary: Type.Boolean(),
  is_owner: Type.Boolean(),
  is_recipient: Type.Boolean(),
  clicks: Type.Integer(),
})
/** A link in a list of the pages: what the visitor is to it, and how often it was followed of late. */
export type ListedLink = Type.Static<typeof ListedLink>

/** What a writer says of a link; the slug is said once, when the link is made. */
export type LinkFields = Pick<Link, 'url' | 'title' | 'description' | 'visibility' | 'append_path'>

/** links.md section 2, Tag; `link_count` counts links that the caller may see. */
export const Tag = Type.Object({ slug: Type.String(), link_count: Type.Integer() })
export type Tag = Type.Static<typeof Tag>

/** A change of a tag's counters. */
export interface TagCount {
  readonly tag: string
  readonly links: number
  readonly public_links: number
}

/** One user with whom a link is shared. */
export const Share = Type.Object({
  id: Uuid,
  email: Type.String(),
  shared_by: Type.String(),
  created_at: Timestamp,
})
export type Share = Type.Static<typeof Share>

const Detail = Type.Record(Type.String(), Type.Array(Type.Unknown()))

export const Change = Type.Object({
  id: Type.Integer(),
  at: Timestamp,
  actor: Type.String(),
  action: Type.String(),
  detail: Detail,
})
/** Something that was done to a link; `detail` has before and after of each field that changed. */
export type Change = Type.Static<typeof Change>

export const Target = Type.Pick(Link, ['id', 'slug', 'url', 'visibility', 'append_path'])
/** What a visit needs of a link. */
export type Target = Type.Static<typeof Target>

export const Suggestion = Type.Pick(Link, ['slug', 'title'])
/** A link that a visitor may have meant. */
export type Suggestion = Type.Static<typeof Suggestion>

/** Who followed a link: a person, a program, or somebody who looked where it leads (`/slug+`). */
export const ClickKind = Type.Union([
  Type.Literal('human'),
  Type.Literal('bot'),
  Type.Literal('preview'),
])
export type ClickKind = Type.Static<typeof ClickKind>

export const DayClicks = Type.Object({
  day: Type.String({ format: 'date' }),
  kind: ClickKind,
  clicks: Type.Integer(),
})
/** The clicks of one kind on one day (UTC). */
export type DayClicks = Type.Static<typeof DayClicks>
