import Type from 'typebox'
import { Destination } from '../../db/hooks/destinations.ts'
import {
  destinationsFragment,
  destinationsPage,
  type DestinationsView,
} from '../../html/hooks/destinations.ts'
import { newForm, type View } from '../../kernel/http/view.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import { readSince, SINCE_FORM } from '../../services/hooks/events/filter.ts'
import {
  addDestination,
  COUNT_UP_TO,
  DestinationForm,
  enableDestination,
  findDestination,
  listDestinations,
  removeDestination,
  retryDeliveries,
} from '../../services/hooks/destinations/destinations.ts'
import { operator } from './access.ts'
import { action, api, page, Switch, type HooksRoutes } from './kit.ts'

const params = { name: Type.String() }

export const DestinationList = Type.Object({ destinations: Type.Array(Destination) })

export const RetryRequest = Type.Object(
  {
    dead: field(
      withDefault(Type.Boolean({ description: 'Also what was given up' }), false),
      'must be true or false.',
    ),
    since: field(
      withDefault(Type.String({ description: 'The first event: its id, or a time' }), ''),
      SINCE_FORM,
      [(text) => readSince(text) !== undefined, SINCE_FORM],
    ),
  },
  { additionalProperties: false },
)

export const Retried = Type.Object({ retried: Type.Integer() })

const usual = { access: operator, tag: 'Destinations' } as const
const path = '/api/v1/destinations/:name'
/** 400 also for two Authorization headers. */
const refuses = [400, 401, 403]

/** `/destinations`, and the same for programs. */
export const destinationEndpoints = [
  api({
    ...usual,
    method: 'GET',
    path: '/api/v1/destinations',
    id: 'listDestinations',
    summary: 'List the destinations, with how many events were delivered and wait.',
    description: `Waiting and dead deliveries are counted up to ${COUNT_UP_TO}.`,
    returns: { description: 'All of them, by name', schema: DestinationList },
    refuses,
    answer: async ({ app }) => ({ destinations: await listDestinations(app.hooks.db) }),
  }),

  page({
    path: '/destinations',
    answer: ({ app }) => destinationsView(app),
  }),

  ...action({
    body: DestinationForm,
    async act({ app, actor, body }) {
      const { db, replayTargets, registry } = app.hooks
      await addDestination({ db, actor, replayTargets: replayTargets() }, body)
      await registry.refresh()
      return findDestination(db, body.name)
    },
    api: {
      ...usual,
      method: 'POST',
      path: '/api/v1/destinations',
      id: 'addDestination',
      summary: 'Deliver each event from now on to a URL.',
      returns: { status: 201, description: 'The new destination', schema: Destination },
      refuses: [...refuses, 409, 422],
    },
    form: {
      path: '/destinations',
      answer: ({ app }, { name }) => {
        return destinationsView(app, { notice: `${name} gets the events from now on.` })
      },
      refused: ({ app }, refused) => destinationsView(app, { form: refused }),
    },
  }),

  ...action({
    params,
    body: Switch,
    async act({ app: { hooks }, actor, params: { name }, body: { enabled } }) {
      await enableDestination({ ...hooks, actor }, name, enabled)
      await hooks.registry.refresh()
      return findDestination(hooks.db, name)
    },
    api: {
      ...usual,
      method: 'PUT',
      path: `${path}/enabled`,
      id: 'enableDestination',
      summary: 'Enable or disable a destination.',
      description: 'Enabled again, it gets what came meanwhile.',
      returns: { description: 'The destination', schema: Destination },
      refuses,
    },
    form: {
      path: '/destinations/:name/enabled',
      answer: ({ app }) => destinationsView(app),
    },
  }),

  ...action({
    params,
    body: RetryRequest,
    async act({ app: { hooks }, actor, params: { name }, body: { dead, since } }) {
      const wanted = { dead, since: readSince(since) ?? { id: 0 } }
      return { retried: await retryDeliveries({ ...hooks, actor }, name, wanted) }
    },
    api: {
      ...usual,
      method: 'POST',
      path: `${path}/retry`,
      id: 'retryDestination',
      summary: 'Try at once what waits for another try.',
      returns: { description: 'How many deliveries are tried again', schema: Retried },
      refuses,
    },
    form: {
      path: '/destinations/:name/retry',
      answer({ app }, { retried }) {
        const what = retried === 1 ? '1 delivery is' : `${retried} deliveries are`
        return destinationsView(app, { notice: `${what} tried again.` })
      },
    },
  }),

  ...action({
    params,
    async act({ app: { hooks }, actor, params: { name } }) {
      await removeDestination({ ...hooks, actor }, name)
      await hooks.registry.refresh()
    },
    api: {
      ...usual,
      method: 'DELETE',
      path,
      id: 'removeDestination',
      summary: 'Remove a destination and its waiting deliveries.',
      returns: { description: 'It was removed' },
      refuses,
    },
    form: {
      path: '/destinations/:name/remove',
      answer: ({ app, params: { name } }) => {
        return destinationsView(app, { notice: `${name} was removed.` })
      },
    },
  }),
]

async function destinationsView(
  { hooks: { db } }: HooksRoutes,
  changes: Partial<DestinationsView> = {},
): Promise<View> {
  const view: DestinationsView = {
    destinations: await listDestinations(db),
    countedTo: COUNT_UP_TO,
    form: newForm(DestinationForm),
    ...changes,
  }
  return {
    page: () => destinationsPage(view),
    fragment: () => destinationsFragment(view),
    location: '/destinations',
  }
}
