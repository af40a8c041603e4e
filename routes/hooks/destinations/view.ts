import Type from 'typebox'
import type { Destination } from '../../../db/hooks/destinations.ts'
import {
  destinationFragment,
  destinationPage,
  type DestinationView,
} from '../../../html/hooks/destinations/destination.ts'
import { newForm, type Typed, type View } from '../../../kernel/http/view.ts'
import {
  listDeliveries,
  type DeliveryQuery,
} from '../../../services/hooks/destinations/deliveries.ts'
import { COUNT_UP_TO, findDestination } from '../../../services/hooks/destinations/destinations.ts'
import { operator } from '../access.ts'
import type { HooksRoutes } from '../kit.ts'
import { SetFields } from './form.ts'

// What the endpoints of one destination share.

export const params = { name: Type.String() }
export const usual = { access: operator, tag: 'Destinations' } as const
export const path = '/api/v1/destinations/:name'
/** 400 also for two Authorization headers. */
export const refuses = [400, 401, 403]

const NEWEST: DeliveryQuery = { state: 'waiting', limit: 50, cursor: '' }

/** The page of one destination. */
export async function destinationView(
  { hooks: { db } }: HooksRoutes,
  name: string,
  { query = NEWEST, ...changes }: Partial<DestinationView> & { query?: DeliveryQuery } = {},
): Promise<View> {
  const destination = await findDestination(db, name)
  const view: DestinationView = {
    destination,
    countedTo: COUNT_UP_TO,
    form: newForm(SetFields, typedOf(destination)),
    state: query.state,
    cursor: query.cursor,
    ...(await listDeliveries(db, name, query)),
    ...changes,
  }
  return {
    page: () => destinationPage(view),
    fragment: () => destinationFragment(view),
    location: `/destinations/${name}`,
  }
}

/** What the form of a destination shows at first. */
function typedOf({ version, url, ordered, rate, timeout_s, ...others }: Destination): Typed {
  const { providers, event_types, json, sign_with, body_template } = others
  return {
    ...{ version, url, ordered: String(ordered), timeout_s: String(timeout_s) },
    rate: rate === null ? '' : String(rate),
    ...{ providers: providers.join('\n'), event_types: event_types.join('\n') },
    json: json.join('\n'),
    sign_with: sign_with?.scheme ?? '',
    body_template: body_template ?? '',
  }
}
