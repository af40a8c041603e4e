import * as Type from '../../../kernel/schema.ts'
import { Bytes, nullable, Timestamp, exec, many, optional, sqlFile } from '../../sql-file.ts'

export const TrustMode = Type.Enum(['signed', 'token', 'open', 'queue'])
export type TrustMode = Type.Static<typeof TrustMode>

/**
 * Where something stands in a delivery: the first of the headers that has it, else the first of
 * the members of its JSON, such as `event.type`.
 */
const Place = Type.Object({
  headers: Type.Array(Type.String()),
  json: Type.Array(Type.String()),
})
export type Place = Type.Static<typeof Place>

/**
 * How deliveries are signed, and where they say what they are. Names of headers are in lower case;
 * of several that mean the same, the first one present counts.
 */
export const SchemeRow = Type.Object({
  /** Headers with the signature. */
  signature: Type.Array(Type.String()),
  /** The text before the signature in its header. */
  prefix: Type.String(),
  encoding: Type.Enum(['hex', 'base64', 'base64url']),
  algorithm: Type.Enum(['sha256', 'sha512', 'sha1', 'ed25519', 'p256', 'rsa-sha256', 'rsa-sha1']),
  /**
   * What is signed, such as `{timestamp}.{body}`: text with the parts `{body}`, `{timestamp}`,
   * `{id}`, `{method}`, `{url}`, `{form}`, `{json:path}` and others: see `signed-text.ts`.
   */
  signed: Type.String(),
  /** Headers with the time of `{timestamp}`. */
  timestamp: Type.Array(Type.String()),
  /** The event's type. */
  type: Place,
  /** The delivery's id, also that of `{id}`. */
  id: Place,
})
export type SchemeRow = Type.Static<typeof SchemeRow>

/** What a delivery must have beside a right signature, as an operator says it. */
const Expected = Type.Object({
  /** Events of other topics are refused. */
  topics: Type.Optional(Type.Array(Type.String())),
  issuer: Type.Optional(Type.String()),
  audience: Type.Optional(Type.String()),
  /** The `sub` of a token, or its verified `email`. */
  subject: Type.Optional(Type.String()),
})
export type Expected = Type.Static<typeof Expected>

/**
 * What an operator says in place of a scheme's own row: of `hmac` all, else type and id alone; and
 * what is expected where the key of the sender is fetched.
 */
const SchemeChanges = Type.Object({
  ...Type.Partial(SchemeRow).properties,
  expected: Type.Optional(Expected),
})
export type SchemeChanges = Type.Static<typeof SchemeChanges>

/** A method of deliveries. */
export const DeliveryMethod = Type.Enum(['DELETE', 'GET', 'PATCH', 'POST', 'PUT'])
export type DeliveryMethod = Type.Static<typeof DeliveryMethod>

/** The answer to a stored delivery that an operator has chosen. */
export const ChosenAnswer = Type.Object({
  status: Type.Integer(),
  /** The media type of the body; null without a body. */
  type: nullable(Type.Enum(['text/plain', 'application/json', 'application/xml'])),
  body: Type.String(),
})
export type ChosenAnswer = Type.Static<typeof ChosenAnswer>

/** Which of a provider's secrets a delivery was sent with. */
const SecretName = Type.Enum(['current', 'previous'])
export type SecretName = Type.Static<typeof SecretName>

const configured = {
  name: Type.String(),
  trust_mode: TrustMode,
  enabled: Type.Boolean(),
  token_hash: nullable(Bytes),
  signing_secret: nullable(Bytes),
  scheme: nullable(Type.String()),
  scheme_row: nullable(SchemeChanges),
  /** Null for POST alone. */
  methods: nullable(Type.Array(DeliveryMethod)),
  /** Null for the usual answer. */
  answer: nullable(ChosenAnswer),
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
  family: Type.Enum(['webhook', 'queue']),
  last_secret: nullable(SecretName),
  last_secret_at: nullable(Timestamp),
  expected_interval_s: nullable(Type.Integer()),
  rejection_burst: nullable(Type.Integer()),
  watched_since: nullable(Timestamp),
  recent_count: Type.Integer(),
  recent_rejections: Type.Integer(),
  last_event_at: nullable(Timestamp),
  heard_at: nullable(Timestamp),
  rejected_count: Type.Integer(),
})
export type ActiveProvider = Type.Static<typeof ActiveProvider>

/** A use of a provider's secret; `rotated_at` is the provider's own as it was then. */
export interface SecretUse {
  provider: string
  secret: SecretName
  at: Date
  rotated_at: Date | null
}

const Name = Type.Object({ name: Type.String() })

export const providerQueries = sqlFile('sql/hooks/receive/providers.sql', {
  listProviders: many(Provider, {}),
  listProvidersWithActivity: many(ActiveProvider, {
    recent_since: 'timestamptz',
    rejected_since: 'timestamptz',
  }),
  addProvider: optional(Name, {
    name: 'text',
    trust_mode: 'text',
    scheme: 'text?',
    scheme_row: 'jsonb?',
    methods: 'jsonb?',
    answer: 'jsonb?',
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
    seen: 'text?',
  }),
  verifyProvider: optional(Name, {
    name: 'text',
    trust_mode: 'text',
    scheme: 'text?',
    scheme_row: 'jsonb?',
    token_hash: 'bytea?',
    signing_secret: 'bytea?',
  }),
  saveSecretUses: exec({ uses: 'jsonb' }),
  setAlarms: optional(Name, { name: 'text', alarms: 'jsonb', now: 'timestamptz' }),
  setTopics: optional(Name, { name: 'text', topics: 'jsonb' }),
  setAnswers: optional(Name, { name: 'text', changes: 'jsonb' }),
  removeProvider: optional(Name, { name: 'text' }),
})
