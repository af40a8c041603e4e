import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, one, sqlFile } from '../../sql-file.ts'
import { Link } from '../names/links.ts'

/** What a visit needs of a link. */
export const Target = Type.Object({
  ...Type.Pick(Link, ['id', 'slug', 'url', 'visibility', 'append_path']).properties,
  /** Visits end at this time, in milliseconds since 1970; null: never. */
  ends_at: nullable(Type.Number()),
  /** How many visits may be redirected in all; null: without a limit. */
  max_visits: Link.properties.max_visits,
})
export type Target = Type.Static<typeof Target>

/** A link on its way into a snapshot, if it is kept there. */
export const UsedLink = Type.Object({
  ...Type.Omit(Target, ['max_visits']).properties,
  rank: Type.Integer(),
  is_kept: Type.Boolean(),
})
export type UsedLink = Type.Static<typeof UsedLink>

/** A link by one of its names, which is the name that was asked for but for dashes. */
const NamedTarget = Type.Object({
  asked: Type.String(),
  name: Type.String(),
  ...Target.properties,
  /** Redirected visits in the database. */
  clicks: Type.Integer(),
  /** The last batch of this process that `clicks` has. */
  written: Type.Integer(),
})
export type NamedTarget = Type.Static<typeof NamedTarget>

/**
 * Who followed a link: a person or a program. `preview`: nobody yet, who looked where it leads
 * (`/slug+`, a chat's preview, a browser that loads ahead).
 */
export const ClickKind = Type.Enum(['human', 'bot', 'preview'])
export type ClickKind = Type.Static<typeof ClickKind>

export const visitQueries = sqlFile('sql/links/visits/visits.sql', {
  findTargets: many(NamedTarget, {
    names: 'jsonb',
    namesakes: 'int8',
    writer: 'uuid',
    limit: 'int8',
  }),
  listMostUsed: many(UsedLink, { rank: 'int8', slug: 'text', limit: 'int8' }),
  mayVisit: one(Type.Object({ may: Type.Boolean() }), { link: 'uuid', users: 'uuid[]' }),
  lockMovesShared: exec({}),
  saveClicks: exec({ writer: 'uuid', batch: 'int8', at: 'timestamptz', clicks: 'jsonb' }),
  saveSources: exec({
    writer: 'uuid',
    batch: 'int8',
    at: 'timestamptz',
    sources: 'jsonb',
    hosts: 'int4',
  }),
  forgetClickWriters: exec({ before: 'timestamptz' }),
})
