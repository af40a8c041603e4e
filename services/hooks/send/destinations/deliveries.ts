import * as Type from '../../../../kernel/schema.ts'
import type { Database } from '../../../../db/client.ts'
import { Delivery, destinationQueries as q } from '../../../../db/hooks/send/destinations.ts'
import { field, fits, parsed, withDefault } from '../../../../kernel/validate.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { cursorAt, readCursor, readSince, SINCE_FORM } from '../../log/events/filter.ts'
import { findDestination } from './destinations.ts'

// The deliveries of a destination that wait for another try, and those that were given up.

const DEFAULT_LIMIT = 50
const MAX_LIMIT = 200
/** Deliveries that are retried by one call. */
const MAX_CHOSEN = 1_000
const Limit = Type.Integer({ minimum: 1, maximum: MAX_LIMIT })

/** The query of a list of deliveries. */
export const DeliveryQuery = Type.Object({
  state: field(withDefault(Type.Enum(['waiting', 'dead']), 'waiting'), 'must be waiting or dead.'),
  limit: parsed(
    withDefault(Limit, DEFAULT_LIMIT),
    `must be a whole number from 1 to ${MAX_LIMIT}.`,
    (given) => (fits(Limit, given) ? given : undefined),
  ),
  cursor: withDefault(Type.String({ description: 'next_cursor of the page before' }), ''),
})
export type DeliveryQuery = Type.Static<typeof DeliveryQuery>

/** The same of a page, which chooses where no state is named. */
export const PageQuery = Type.Object({
  ...DeliveryQuery.properties,
  state: field(
    withDefault(Type.Enum(['', 'waiting', 'dead']), ''),
    'must be waiting, dead or nothing.',
  ),
})
export type PageQuery = Type.Static<typeof PageQuery>

export const DeliveryList = Type.Object({
  deliveries: Type.Array(Delivery),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
})
export type DeliveryList = Type.Static<typeof DeliveryList>

const EVENTS_FORM = `must be a list of event ids, ${MAX_CHOSEN} at most.`

/** Events whose deliveries are tried again: of JSON, or the ticked boxes of a form. */
export const Chosen = parsed(Type.Array(Type.Integer()), EVENTS_FORM, (given) => {
  const ids = Array.isArray(given) ? given.map(Number) : []
  const fit = ids.every((id) => Number.isSafeInteger(id) && id > 0)
  return fit && ids.length <= MAX_CHOSEN ? [...new Set(ids)] : undefined
})

/** Which deliveries are tried again. */
export const RetryFields = Type.Object({
  dead: field(
    withDefault(Type.Boolean({ description: 'Also what was given up' }), false),
    'must be true or false.',
  ),
  since: field(
    withDefault(Type.String({ description: 'The first event: its id, or a time' }), ''),
    SINCE_FORM,
    [(text) => readSince(text) !== undefined, SINCE_FORM],
  ),
})

/** The same for programs, or the events alone. */
export const RetryRequest = Type.Object(
  { ...RetryFields.properties, events: Type.Optional(Chosen) },
  { additionalProperties: false },
)

/** A page of what waits or was given up, the oldest event first; throws 404. */
export async function listDeliveries(
  db: Database,
  name: string,
  { state, cursor, limit }: DeliveryQuery,
): Promise<DeliveryList> {
  await findDestination(db, name, 0)
  const after = cursor === '' ? 0 : readCursor(cursor)
  const slice = { name, dead: state === 'dead', after, limit: limit + 1 }
  const rows = await q.listDeliveries(db, slice)
  const deliveries = rows.slice(0, limit)
  const last = deliveries.at(-1)
  const next_cursor = rows.length > limit && last !== undefined ? cursorAt(last.event_id) : null
  return { deliveries, next_cursor }
}

/** Makes the deliveries of some events due, also dead ones; returns how many. Throws 404. */
export async function retryChosen(
  { db, actor }: ChangeTools,
  name: string,
  events: readonly number[],
): Promise<number> {
  await findDestination(db, name, 0)
  return db.transaction(async (tx) => {
    const { retried } = await q.retryChosen(tx, { name, events })
    const note = { service: 'hooks', action: 'destination retry', subject: name } as const
    await noteChange(tx, actor, note)
    return retried
  })
}
