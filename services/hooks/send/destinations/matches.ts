import type { Database } from '../../../../db/client.ts'
import { destinationQueries as q, type Matches } from '../../../../db/hooks/send/destinations.ts'
import { eventQueries } from '../../../../db/hooks/log/events.ts'
import { PAYLOAD_STEP } from '../../log/events/events.ts'
import { readFilters } from './form.ts'

// What helps to choose the events of a destination: how many its filters would have wanted, and
// which types are known.

/** How many of the newest events are counted, and how many where their payloads are read. */
const ROWS = 1_000
const PAYLOAD_ROWS = 200
const SUGGESTED_TYPES = 200

/**
 * How many of the newest events the filters in a form want. Filters that read payloads look at
 * fewer of them. Undefined while a filter has another form.
 */
export async function countMatches(
  db: Database,
  typed: Readonly<Record<string, string>>,
): Promise<Matches | undefined> {
  const filters = readFilters(typed)
  if (filters === undefined) return undefined
  const step =
    filters.members.length > 0
      ? { rows: PAYLOAD_ROWS, bytes: PAYLOAD_STEP.bytes }
      : { rows: ROWS, bytes: Number.MAX_SAFE_INTEGER }
  return q.countMatches(db, { filters, ...step })
}

/** Types that came so far, which the form offers. */
export async function knownTypes(db: Database): Promise<readonly string[]> {
  const types = await eventQueries.listTypes(db, { provider: null, limit: SUGGESTED_TYPES })
  return types.map(({ event_type }) => event_type)
}
