import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Attached, Connection, ForwarderState } from './rows.ts'

/** Makes a new connection of a forwarder; `start` counts for a new name only, null is the newest event. */
export function attachForwarder(
  db: Executor,
  name: string,
  start: number | null,
  at: Date,
): Promise<Attached> {
  return one(db, q.attachForwarder, [name, start, at])
}

/** Moves the position up; false when a newer connection has the forwarder's name. */
export async function moveForwarder(
  db: Executor,
  { name, connection }: Connection,
  position: number,
  at: Date,
): Promise<boolean> {
  return (await optional(db, q.moveForwarder, [name, connection, position, at])) !== undefined
}

/** Every forwarder that is known, 1,000 at most; `limit` is up to where the events above each one are counted. */
export function listForwarders(db: Executor, limit: number): Promise<readonly ForwarderState[]> {
  return many(db, q.listForwarders, [limit, 1_000])
}

/** False when there is no forwarder of this name. */
export async function removeForwarder(db: Executor, name: string): Promise<boolean> {
  return (await optional(db, q.removeForwarder, [name])) !== undefined
}

/** The newest connections of the forwarders with these names. */
export function listConnections(
  db: Executor,
  names: readonly string[],
): Promise<readonly Connection[]> {
  return many(db, q.listConnections, [names, names.length])
}
