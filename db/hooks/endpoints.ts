import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Endpoint, EndpointKey } from './rows.ts'

/** All endpoints of the tool protocol, by name. */
export function listEndpoints(db: Executor): Promise<readonly Endpoint[]> {
  return many(db, q.listEndpoints, [])
}

/** What requests to the endpoints are checked against. */
export function listEndpointKeys(db: Executor): Promise<readonly EndpointKey[]> {
  return many(db, q.listEndpointKeys, [])
}

/** False when the name is taken. */
export async function addEndpoint(db: Executor, endpoint: EndpointKey): Promise<boolean> {
  const { name, token_hash, may_replay } = endpoint
  return (await optional(db, q.addEndpoint, [name, token_hash, may_replay])) !== undefined
}

/** False when there is no such endpoint. */
export async function removeEndpoint(db: Executor, name: string): Promise<boolean> {
  return (await optional(db, q.removeEndpoint, [name])) !== undefined
}

/** Notes that an endpoint was used; one use a minute is enough. */
export async function touchEndpoint(db: Executor, name: string, at: Date): Promise<void> {
  await db.run(q.touchEndpoint, [name, at])
}
