import * as Type from '../../../../kernel/schema.ts'
import { countText } from '../../../../html/parts.ts'
import type { Outcome } from '../../../../kernel/http/outcome.ts'
import { newForm } from '../../../../kernel/http/view.ts'
import {
  Chosen,
  DeliveryList,
  DeliveryQuery,
  listDeliveries,
  PageQuery,
  retryChosen,
  RetryFields,
  RetryRequest,
} from '../../../../services/hooks/send/destinations/deliveries.ts'
import {
  listDestinations,
  retryDeliveries,
} from '../../../../services/hooks/send/destinations/destinations.ts'
import { readSince } from '../../../../services/hooks/log/events/filter.ts'
import { action, api, form, page } from '../../kit.ts'
import { newView } from './destinations.ts'
import { AddFields } from './form.ts'
import { destinationView, params, path, refuses, usual } from './view.ts'

export const Retried = Type.Object({ retried: Type.Integer() })

/** The deliveries of one destination: its page, and the same for programs. */
export const deliveryEndpoints = [
  page({
    path: '/destinations/:name',
    params,
    query: PageQuery,
    async answer({ app, params: { name }, query }) {
      // Other nouns have their forms at this address; a destination may have this name.
      const isForm = name === 'new' && (await listDestinations(app.hooks.db, name)).length === 0
      return isForm ? newView(app, newForm(AddFields)) : destinationView(app, name, { query })
    },
  }),

  api({
    ...usual,
    method: 'GET',
    path: `${path}/deliveries`,
    id: 'listDestinationDeliveries',
    summary: 'List what waits for a destination or was given up, with the last answer to each.',
    description: 'The oldest event first. What was delivered is listed with its event.',
    params,
    query: DeliveryQuery,
    returns: { description: 'A page of deliveries', schema: DeliveryList },
    refuses,
    answer: ({ app: { hooks }, params: { name }, query }) => listDeliveries(hooks.db, name, query),
  }),

  ...action({
    params,
    body: RetryRequest,
    async act({ app: { hooks }, actor, params: { name }, body: { dead, since, events } }) {
      const tools = { ...hooks, actor }
      if (events !== undefined) return { retried: await retryChosen(tools, name, events) }
      const wanted = { dead, since: readSince(since) ?? { id: 0 } }
      return { retried: await retryDeliveries(tools, name, wanted) }
    },
    api: {
      ...usual,
      method: 'POST',
      path: `${path}/retry`,
      id: 'retryDestination',
      summary: 'Try at once what waits for another try, or the deliveries of some events.',
      returns: { description: 'How many deliveries are tried again', schema: Retried },
      refuses,
    },
    form: {
      path: '/destinations/:name/retry',
      body: RetryFields,
      toBody: ({ body }) => body,
      answer: async ({ app, params: { name } }, { retried }) => {
        return { ...(await destinationView(app, name)), done: retriedOutcome(retried) }
      },
    },
  }),

  form({
    path: '/destinations/:name/deliveries',
    params,
    query: DeliveryQuery,
    body: Type.Object({ events: Chosen }),
    async answer({ app, actor, params: { name }, query, body: { events } }) {
      const retried = await retryChosen({ ...app.hooks, actor }, name, events)
      const view = await destinationView(app, name, { query })
      return { ...view, done: retriedOutcome(retried) }
    },
  }),
]

function retriedOutcome(count: number): Outcome {
  return ['retried', countText(count, 'delivery', 'deliveries')]
}
