import * as Type from '../../../kernel/schema.ts'
import { many, nullable, optional, sqlFile, Timestamp, Uuid } from '../../sql-file.ts'
import { Link } from '../names/links.ts'

/** The clicks of a day (UTC): in all, and by kind. */
export const DayClicks = Type.Object({
  day: Type.String({ format: 'date' }),
  total: Type.Integer(),
  human: Type.Integer(),
  bot: Type.Integer(),
  preview: Type.Integer(),
})
export type DayClicks = Type.Static<typeof DayClicks>

const Totals = Type.Object({
  total: Type.Integer(),
  last_visit: nullable(Timestamp),
  human: Type.Integer(),
  bot: Type.Integer(),
  preview: Type.Integer(),
})

export const VisitDay = Type.Object({
  day: Type.String({ format: 'date' }),
  visits: Type.Integer(),
})

const Source = Type.Object({ name: Type.String(), visits: Type.Integer() })
export type Source = Type.Static<typeof Source>

/** A link with how much it is used. */
export const UsedLink = Type.Object({
  ...Type.Pick(Link, ['id', 'slug', 'title', 'url', 'expires_at', 'max_visits', 'archived'])
    .properties,
  clicks: Type.Integer(),
  clicked_at: nullable(Timestamp),
  /** When it was last visited; its creation where it never was. */
  used_at: Timestamp,
})
export type UsedLink = Type.Static<typeof UsedLink>

export const statsQueries = sqlFile('sql/links/visits/stats.sql', {
  findTotals: optional(Totals, { link: 'uuid' }),
  listVisitDays: many(VisitDay, { link: 'uuid', limit: 'int8' }),
  listSources: many(Source, {
    link: 'uuid',
    by: 'text',
    since: 'text',
    most: 'int8',
    limit: 'int8',
  }),
  listDayVisits: many(Type.Object({ link: Uuid, ...VisitDay.properties }), {
    links: 'uuid[]',
    since: 'text',
    limit: 'int8',
  }),
  listClicks: many(DayClicks, { link: 'uuid', since: 'text', days: 'int8' }),
  listMostUsed: many(UsedLink, { owners: 'uuid[]?', limit: 'int8' }),
  listUnused: many(UsedLink, {
    owners: 'uuid[]?',
    before: 'timestamptz',
    used_at: 'timestamptz',
    after: 'text',
    limit: 'int8',
  }),
})
