import Type from 'typebox'
import { Bytes, nullable, Timestamp, exec, many, optional, sqlFile } from '../sql-file.ts'

export const TrustMode = Type.Union([
  Type.Literal('signed'),
  Type.Literal('token'),
  Type.Literal('open'),
  Type.Literal('queue'),
])
export type TrustMode = Type.Static<typeof TrustMode>

/** Which of a provider's secrets a delivery was sent with. */
const SecretName = Type.Union([Type.Literal('current'), Type.Literal('previous')])
export type SecretName = Type.Static<typeof SecretName>

const configured = {
  name: Type.String(),
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  token_hash: nullable(Bytes),
  signing_secret: nullable(Bytes),
  previous_until: nullable(Timestamp),
  rotated_at: nullable(Timestamp),
}

/** What the receivers check of a provider; `watched` when an alarm is set. */
export const Provider = Type.Object({
  ...configured,
  previous_hash: nullable(Bytes),
  previous_signing_secret: nullable(Bytes),
  watched: Type.Boolean(),
})
export type Provider = Type.Static<typeof Provider>

/** A provider with what it has delivered. */
export const ActiveProvider = Type.Object({
  ...configured,
  family: Type.Union([Type.Literal('webhook'), Type.Literal('queue')]),
  last_secret: nullable(SecretName),
  last_secret_at: nullable(Timestamp),
  expected_interval_s: nullable(Type.Integer()),
  rejection_burst: nullable(Type.Integer()),
  watched_since: nullable(Timestamp),
  recent_count: Type.Integer(),
  last_event_at: nullable(Timestamp),
  heard_at: nullable(Timestamp),
  rejected_count: Type.Integer(),
})
export type ActiveProvider = Type.Static<typeof ActiveProvider>

/** Events of a provider in one hour. */
export const Activity = Type.Object({
  provider: Type.String(),
  hour: Timestamp,
  events: Type.Integer(),
})
export type Activity = Type.Static<typeof Activity>

/** A use of a provider's secret; `rotated_at` is the provider's own as it was then. */
export interface SecretUse {
  readonly provider: string
  readonly secret: SecretName
  readonly at: Date
  readonly rotated_at: Date | null
}

const Name = Type.Object({ name: Type.String() })

export const providerQueries = sqlFile('sql/hooks/providers.sql', {
  listProviders: many(Provider, {}),
  listProvidersWithActivity: many(ActiveProvider, {
    recent_since: 'timestamptz',
    rejected_since: 'timestamptz',
  }),
  listActivity: many(Activity, { since: 'timestamptz' }),
  addProvider: optional(Name, {
    name: 'text',
    trust_mode: 'text',
    enabled: 'bool',
    token_hash: 'bytea?',
    signing_secret: 'bytea?',
  }),
  addQueueProviders: exec({ names: 'jsonb' }),
  enableProvider: optional(Name, { name: 'text', enabled: 'bool', now: 'timestamptz' }),
  rotateSecret: optional(Name, {
    name: 'text',
    trust_mode: 'text',
    token_hash: 'bytea?',
    signing_secret: 'bytea?',
    now: 'timestamptz',
    until: 'timestamptz?',
  }),
  saveSecretUses: exec({ uses: 'jsonb' }),
  setAlarms: optional(Name, {
    name: 'text',
    sets_interval: 'bool',
    interval: 'int4?',
    sets_burst: 'bool',
    burst: 'int4?',
    now: 'timestamptz',
  }),
  removeProvider: optional(Name, { name: 'text' }),
})
