import Type from 'typebox'
import { exec, many, one, optional, sqlFile } from '../sql-file.ts'
import { Link } from './links.ts'

/** What a visit needs of a link. */
export const Target = Type.Pick(Link, ['id', 'slug', 'url', 'visibility', 'append_path'])
export type Target = Type.Static<typeof Target>

/** Who followed a link: a person, a program, or somebody who looked where it leads (`/slug+`). */
export const ClickKind = Type.Union([
  Type.Literal('human'),
  Type.Literal('bot'),
  Type.Literal('preview'),
])
export type ClickKind = Type.Static<typeof ClickKind>

/** The clicks of one kind on one day (UTC). */
export const DayClicks = Type.Object({
  day: Type.String({ format: 'date' }),
  kind: ClickKind,
  clicks: Type.Integer(),
})
export type DayClicks = Type.Static<typeof DayClicks>

export const visitQueries = sqlFile('sql/links/visits.sql', {
  findTarget: optional(Target, { slug: 'text' }),
  mayVisit: one(Type.Object({ may: Type.Boolean() }), { link: 'uuid', user: 'uuid' }),
  saveClicks: exec({ writer: 'uuid', batch: 'int8', at: 'timestamptz', clicks: 'jsonb' }),
  forgetClickWriters: exec({ before: 'timestamptz' }),
  listClicks: many(DayClicks, { link: 'uuid', since: 'text', limit: 'int8' }),
})
