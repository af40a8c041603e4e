import * as Type from '../../../kernel/schema.ts'
import { Bytes, nullable, Timestamp, exec, many, optional, sqlFile } from '../../sql-file.ts'

/** An endpoint of the tool protocol as an operator sees it. */
export const Endpoint = Type.Object({
  name: Type.String(),
  may_replay: Type.Boolean(),
  created_at: Timestamp,
  last_used_at: nullable(Timestamp),
})
export type Endpoint = Type.Static<typeof Endpoint>

/** What a request to an endpoint is checked against. */
export const EndpointKey = Type.Object({
  name: Type.String(),
  token_hash: Bytes,
  may_replay: Type.Boolean(),
})
export type EndpointKey = Type.Static<typeof EndpointKey>

const Name = Type.Pick(Endpoint, ['name'])

export const endpointQueries = sqlFile('sql/hooks/agents/endpoints.sql', {
  listEndpoints: many(Endpoint, {}),
  listEndpointKeys: many(EndpointKey, {}),
  addEndpoint: optional(Name, { name: 'text', token_hash: 'bytea', may_replay: 'bool' }),
  removeEndpoint: optional(Type.Pick(EndpointKey, ['token_hash']), { name: 'text' }),
  touchEndpoint: exec({ name: 'text', now: 'timestamptz' }),
})
