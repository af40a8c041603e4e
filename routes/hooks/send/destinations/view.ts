import * as Type from '../../../../kernel/schema.ts'
import type { Destination } from '../../../../db/hooks/send/destinations.ts'
import {
  destinationFragment,
  destinationPage,
  type DestinationView,
} from '../../../../html/hooks/send/destinations/destination.ts'
import { newForm, type FormState, type Typed, type View } from '../../../../kernel/http/view.ts'
import {
  listDeliveries,
  type PageQuery,
} from '../../../../services/hooks/send/destinations/deliveries.ts'
import {
  findDestination,
  PAGE_COUNT_UP_TO,
} from '../../../../services/hooks/send/destinations/destinations.ts'
import { countMatches, knownTypes } from '../../../../services/hooks/send/destinations/matches.ts'
import { providerQueries } from '../../../../db/hooks/receive/providers.ts'
import type { FormHelp, TestState } from '../../../../html/hooks/send/destinations/form.ts'
import { operator } from '../../access.ts'
import type { HooksRoutes } from '../../kit.ts'
import { SetFields } from './form.ts'

// What the endpoints of one destination share.

export const params = { name: Type.String() }
export const usual = { access: operator, tag: 'Destinations' } as const
export const path = '/api/v1/destinations/:name'
/** 400 also for two Authorization headers. */
export const refuses = [400, 401, 403]

const NEWEST: PageQuery = { state: '', limit: 50, cursor: '' }

interface DestinationChanges {
  query?: PageQuery
  /** The form, where it is not that of the present settings. */
  form?: FormState
  tested?: TestState
}

/** The names of all providers. */
export async function providerNames({ hooks: { db } }: HooksRoutes): Promise<readonly string[]> {
  return (await providerQueries.listProviders(db, {})).map(({ name }) => name)
}

/** What a form of a destination says beside what was typed. */
export async function formHelp(
  app: HooksRoutes,
  { typed = {} }: FormState,
  tested: TestState,
): Promise<FormHelp> {
  const { db } = app.hooks
  const [providers, types, matches] = await Promise.all([
    providerNames(app),
    knownTypes(db),
    countMatches(db, typed),
  ])
  return { providers, types, matches, tested }
}

/** The page of one destination. */
export async function destinationView(
  app: HooksRoutes,
  name: string,
  { query = NEWEST, form, tested }: DestinationChanges = {},
): Promise<View> {
  const { db } = app.hooks
  const destination = await findDestination(db, name, PAGE_COUNT_UP_TO)
  const { waiting, dead } = destination
  // What failed is what somebody looks for, unless something waits.
  const state = query.state || (waiting === 0 && dead > 0 ? 'dead' : 'waiting')
  const shown = form ?? newForm(SetFields, typedOf(destination))
  const [help, listed] = await Promise.all([
    formHelp(app, shown, tested),
    listDeliveries(db, name, { ...query, state }),
  ])
  const view: DestinationView = {
    destination,
    countedTo: PAGE_COUNT_UP_TO,
    form: shown,
    help,
    state,
    cursor: query.cursor,
    ...listed,
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
    version,
    url,
    ordered: String(ordered),
    timeout_s: String(timeout_s),
    rate: rate === null ? '' : String(rate),
    // The last one stands in the field of its own: it is the last one again when it is saved.
    provider: providers.at(-1) ?? '',
    event_type: event_types.at(-1) ?? '',
    providers: providers.slice(0, -1).join('\n'),
    event_types: event_types.slice(0, -1).join('\n'),
    json: json.join('\n'),
    sign_with: sign_with?.scheme ?? '',
    body_template: body_template ?? '',
  }
}
