import Type from 'typebox'
import { exec, many, one, sqlFile } from '../sql-file.ts'
import { Link } from './links.ts'

/** What a visit needs of a link. */
export const Target = Type.Object({
  ...Type.Pick(Link, ['id', 'slug', 'url', 'visibility', 'append_path']).properties,
  /** Visits end at this time, in milliseconds since 1970; Infinity: never. */
  ends_at: Type.Number(),
  /** How many more visits may be redirected; Infinity without a limit. */
  visits_left: Type.Number(),
})
export type Target = Type.Static<typeof Target>

/** A link by one of its names, which is the name that was asked for but for dashes. */
const NamedTarget = Type.Object({
  asked: Type.String(),
  name: Type.String(),
  ...Target.properties,
})
export type NamedTarget = Type.Static<typeof NamedTarget>

/** Who followed a link: a person, a program, or somebody who looked where it leads (`/slug+`). */
export const ClickKind = Type.Enum(['human', 'bot', 'preview'])
export type ClickKind = Type.Static<typeof ClickKind>

export const visitQueries = sqlFile('sql/links/visits.sql', {
  findTargets: many(NamedTarget, { names: 'jsonb', namesakes: 'int8', limit: 'int8' }),
  mayVisit: one(Type.Object({ may: Type.Boolean() }), { link: 'uuid', user: 'uuid' }),
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
