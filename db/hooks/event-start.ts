import type { Executor } from '../client.ts'
import { optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { StoredEvent } from './rows.ts'

/** An event with the first `bytes` of its payload; `payload_size` is that of the whole. */
export function findEventStart(
  db: Executor,
  id: number,
  bytes: number,
): Promise<StoredEvent | undefined> {
  return optional(db, q.findEventStart, [id, bytes])
}
