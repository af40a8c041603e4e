import * as Type from '../../../kernel/schema.ts'
import { exec, many, nullable, one, optional, sqlFile, Timestamp } from '../../sql-file.ts'
import { Link } from '../names/links.ts'

/**
 * What checks know of an address. `broken`: no page or no host, twice a day apart. `unknown`: any
 * other answer that says neither, or none.
 */
export const HealthState = Type.Enum(['broken', 'unknown', 'ok'])
export type HealthState = Type.Static<typeof HealthState>

const Found = Type.Object({
  since: nullable(Timestamp),
  checked_at: nullable(Timestamp),
  status: nullable(Type.Integer({ description: 'The status of the answer; null for none' })),
  problem: nullable(Type.String({ description: 'What is wrong, for people' })),
})

/** The members of a check that its runs change. */
export const FOUND = Object.keys(Found.properties) as (keyof typeof Found.properties)[]

/** What the check of one link has found. */
export const Health = Type.Object({
  enabled: Type.Boolean({ description: 'false: its owners have left it out of the checks' }),
  checkable: Type.Boolean({
    description: 'false for secure and archived links, and for addresses with places',
  }),
  state: Type.Enum(['unchecked', 'broken', 'unknown', 'ok']),
  ...Found.properties,
})
export type Health = Type.Static<typeof Health>

/** A link of the report. */
export const CheckedLink = Type.Object({
  ...Type.Pick(Link, ['id', 'slug', 'url', 'title', 'visibility']).properties,
  owners: Type.Array(Type.String(), { description: 'E-mail addresses, the primary owner first' }),
  state: HealthState,
  ...Found.properties,
})
export type CheckedLink = Type.Static<typeof CheckedLink>

const Address = Type.Object({ slug: Type.String(), url: Type.String() })

/** A link whose address is checked now, and what was known of it. */
const ClaimedCheck = Type.Object({
  ...Address.properties,
  host: Type.String(),
  state: Health.properties.state,
  since: nullable(Timestamp),
  missing_since: nullable(Timestamp),
})
export type ClaimedCheck = Type.Static<typeof ClaimedCheck>

const Unplanned = Type.Object({ links: Type.Array(Address), last: nullable(Type.String()) })

export const healthQueries = sqlFile('sql/links/visits/health.sql', {
  listUnplanned: one(Unplanned, { after: 'text', until: 'timestamptz', links: 'int8' }),
  planChecks: exec({ links: 'jsonb', now: 'timestamptz', seconds: 'int8' }),
  claimChecks: many(ClaimedCheck, {
    now: 'timestamptz',
    seconds: 'int8',
    window: 'int8',
    limit: 'int8',
  }),
  saveCheck: exec({
    slug: 'text',
    url: 'text',
    host: 'text',
    state: 'text',
    status: 'int4?',
    problem: 'text?',
    since: 'timestamptz',
    missing_since: 'timestamptz?',
    now: 'timestamptz',
    due_at: 'timestamptz',
    free_at: 'timestamptz',
  }),
  forgetHosts: exec({ before: 'timestamptz' }),
  findHealth: optional(Health, { link: 'uuid' }),
  setChecked: exec({ link: 'uuid', enabled: 'bool' }),
  listChecked: many(CheckedLink, {
    state: 'text',
    users: 'uuid[]?',
    after: 'text',
    limit: 'int8',
  }),
  listBrokenOf: many(Type.Pick(Address, ['slug']), { slugs: 'jsonb', limit: 'int8' }),
})
