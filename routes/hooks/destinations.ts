import Type from 'typebox'
import { Destination } from '../../db/hooks/destinations.ts'
import {
  destinationsFragment,
  destinationsPage,
  type DestinationsView,
} from '../../html/hooks/destinations.ts'
import { newForm } from '../../kernel/http/endpoint.ts'
import type { View } from '../../kernel/http/view.ts'
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
import { api, form, page, type HooksRoutes } from './kit.ts'

const params = { name: Type.String() }

const EnableForm = Type.Object({
  enabled: field(Type.Enum(['true', 'false']), 'must be true or false.'),
})

const RetryForm = Type.Object({
  dead: field(withDefault(Type.Boolean(), false), 'must be ticked or not.'),
})

export const DestinationList = Type.Object({ destinations: Type.Array(Destination) })

export const DestinationSwitch = Type.Object(
  { enabled: field(Type.Boolean(), 'must be true or false.') },
  { additionalProperties: false },
)

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
const refuses = [401, 403]

/** Destinations for programs: the same as the page has. */
const forPrograms = [
  api({
    ...usual,
    method: 'GET',
    path: '/api/v1/destinations',
    id: 'listDestinations',
    summary: 'List the destinations, with what each was delivered and is owed.',
    description: `Waiting and dead deliveries are counted up to ${COUNT_UP_TO}.`,
    returns: { description: 'All of them, by name', schema: DestinationList },
    refuses,
    answer: async ({ app }) => ({ destinations: await listDestinations(app.hooks.db) }),
  }),

  api({
    ...usual,
    method: 'POST',
    path: '/api/v1/destinations',
    id: 'addDestination',
    summary: 'Deliver each event from now on to a URL.',
    body: DestinationForm,
    returns: { status: 201, description: 'The new destination', schema: Destination },
    refuses: [...refuses, 409, 422],
    async answer({ app, actor, body }) {
      const { db, replayTargets, registry } = app.hooks
      await addDestination({ db, actor, replayTargets: replayTargets() }, body)
      await registry.refresh()
      return findDestination(db, body.name)
    },
  }),

  api({
    ...usual,
    method: 'PUT',
    path: `${path}/enabled`,
    id: 'enableDestination',
    summary: 'Enable or disable a destination.',
    description: 'Enabled again, it gets what came meanwhile.',
    params,
    body: DestinationSwitch,
    returns: { description: 'The destination', schema: Destination },
    refuses,
    async answer({ app: { hooks }, actor, params: { name }, body: { enabled } }) {
      await enableDestination({ ...hooks, actor }, name, enabled)
      await hooks.registry.refresh()
      return findDestination(hooks.db, name)
    },
  }),

  api({
    ...usual,
    method: 'POST',
    path: `${path}/retry`,
    id: 'retryDestination',
    summary: 'Try at once what waits for another try.',
    params,
    body: RetryRequest,
    returns: { description: 'How many deliveries are tried again', schema: Retried },
    refuses,
    async answer({ app: { hooks }, actor, params: { name }, body: { dead, since } }) {
      const from = readSince(since) ?? { id: 0 }
      const wanted = { dead, since: from }
      return { retried: await retryDeliveries({ ...hooks, actor }, name, wanted) }
    },
  }),

  api({
    ...usual,
    method: 'DELETE',
    path,
    id: 'removeDestination',
    summary: 'Remove a destination with what it is owed.',
    params,
    returns: { description: 'It was removed' },
    refuses,
    async answer({ app: { hooks }, actor, params: { name } }) {
      await removeDestination({ ...hooks, actor }, name)
      await hooks.registry.refresh()
    },
  }),
]

/** `/destinations` and its forms, and the same for programs. */
export const destinationEndpoints = [
  ...forPrograms,
  page({
    path: '/destinations',
    answer: ({ app }) => destinationsView(app),
  }),

  form({
    path: '/destinations',
    body: DestinationForm,
    async answer({ app, actor, body }) {
      const { db, replayTargets } = app.hooks
      await addDestination({ db, actor, replayTargets: replayTargets() }, body)
      return changedView(app, `${body.name} gets the events from now on.`)
    },
    refused: ({ app }, refused) => destinationsView(app, { form: refused }),
  }),

  form({
    path: '/destinations/:name/enabled',
    params,
    body: EnableForm,
    async answer({ app, actor, params: { name }, body: { enabled } }) {
      await enableDestination({ ...app.hooks, actor }, name, enabled === 'true')
      return changedView(app, undefined)
    },
  }),

  form({
    path: '/destinations/:name/retry',
    params,
    body: RetryForm,
    async answer({ app, actor, params: { name }, body: { dead } }) {
      const wanted = { dead, since: { id: 0 } }
      const retried = await retryDeliveries({ ...app.hooks, actor }, name, wanted)
      const what = retried === 1 ? '1 delivery is' : `${retried} deliveries are`
      return changedView(app, `${what} tried again.`)
    },
  }),

  form({
    path: '/destinations/:name/remove',
    params,
    async answer({ app, actor, params: { name } }) {
      await removeDestination({ ...app.hooks, actor }, name)
      return changedView(app, `${name} was removed.`)
    },
  }),
]

/** The page after a change, which this process follows at once. */
async function changedView(app: HooksRoutes, notice: string | undefined): Promise<View> {
  await app.hooks.registry.refresh()
  return destinationsView(app, notice === undefined ? {} : { notice })
}

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
