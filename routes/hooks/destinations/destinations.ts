import Type from 'typebox'
import { Destination } from '../../../db/hooks/destinations.ts'
import {
  destinationsFragment,
  destinationsPage,
  type DestinationsView,
} from '../../../html/hooks/destinations/destinations.ts'
import { entityTag, preconditionOf } from '../../../kernel/http/headers.ts'
import type { Actor } from '../../../kernel/actor.ts'
import { newForm, type FormState, type Typed, type View } from '../../../kernel/http/view.ts'
import {
  addDestination,
  COUNT_UP_TO,
  enableDestination,
  findDestination,
  listDestinations,
  removeDestination,
  setDestination,
  type DestinationTools,
} from '../../../services/hooks/destinations/destinations.ts'
import { DestinationForm, DestinationUpdate } from '../../../services/hooks/destinations/form.ts'
import { action, api, page, Switch, type HooksRoutes } from '../kit.ts'
import { AddFields, SetFields, toBody, withoutSecrets } from './form.ts'
import { destinationView, params, path, refuses, usual } from './view.ts'

export const DestinationList = Type.Object({ destinations: Type.Array(Destination) })

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

  api({
    ...usual,
    method: 'GET',
    path,
    id: 'getDestination',
    summary: 'Get a destination, with how many events were delivered and wait.',
    params,
    returns: destinationReply('The destination'),
    refuses,
    answer: ({ app, params: { name } }) => findDestination(app.hooks.db, name),
  }),

  page({
    path: '/destinations',
    answer: ({ app }) => destinationsView(app),
  }),

  ...action({
    body: DestinationForm,
    async act({ app, actor, body }) {
      await addDestination(toolsOf(app, actor), body)
      await app.hooks.registry.refresh()
      return findDestination(app.hooks.db, body.name)
    },
    api: {
      ...usual,
      method: 'POST',
      path: '/api/v1/destinations',
      id: 'addDestination',
      summary: 'Deliver each event from now on to a URL.',
      returns: { status: 201, ...destinationReply('The new destination') },
      refuses: [...refuses, 409, 422],
    },
    form: {
      path: '/destinations',
      body: AddFields,
      toBody: ({ body }) => toBody(body),
      answer: async ({ app }, { name }) => {
        return { ...(await destinationsView(app)), done: ['added', name] }
      },
      refused: ({ app }, refused) => destinationsView(app, { form: shownAgain(refused) }),
    },
  }),

  ...action({
    params,
    body: DestinationUpdate,
    async act({ app, actor, params: { name }, body, context }) {
      const named = preconditionOf(context.headers)
      const isPresent = (version: string) =>
        named(version) && (!body.version || body.version === version)
      await setDestination(toolsOf(app, actor), name, body, isPresent)
      await app.hooks.registry.refresh()
      return findDestination(app.hooks.db, name)
    },
    api: {
      ...usual,
      method: 'PUT',
      path,
      id: 'setDestination',
      summary: 'Change the settings of a destination; waiting deliveries stay.',
      headers: Type.Object({
        'If-Match': Type.Optional(
          Type.String({ description: 'ETag of the version to change; without it any version' }),
        ),
      }),
      returns: destinationReply('The destination as it is now'),
      refuses: [...refuses, 412, 422],
    },
    form: {
      path: '/destinations/:name',
      body: SetFields,
      toBody: ({ body }) => toBody(body),
      answer: async ({ app, params: { name } }) => {
        return { ...(await destinationView(app, name)), done: ['saved'] }
      },
      refused: ({ app, params: { name } }, refused) =>
        destinationView(app, name, { form: shownAgain(refused) }),
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
      answer: async ({ app, params: { name }, body: { enabled } }) => {
        const view = await destinationView(app, name)
        return { ...view, done: [enabled ? 'enabled' : 'disabled', name] }
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
      answer: async ({ app, params: { name } }) => {
        return { ...(await destinationsView(app)), done: ['removed', name] }
      },
    },
  }),
]

function toolsOf({ hooks }: HooksRoutes, actor: Actor): DestinationTools {
  const { db, secrets, replayTargets } = hooks
  return { db, actor, secrets, replayTargets: replayTargets() }
}

/** A refused form, without the secrets that were typed. */
function shownAgain(form: FormState & { typed: Typed }): FormState {
  return { ...form, typed: withoutSecrets(form.typed) }
}

/** A destination as a reply, with its entity tag. */
function destinationReply(description: string) {
  const etag = Type.String({ description: 'Another one after each change, for If-Match.' })
  return {
    description,
    schema: Destination,
    headers: Type.Object({ ETag: etag }),
    headersOf: ({ version }: Destination) => ({ etag: entityTag(version) }),
  }
}

async function destinationsView(
  { hooks: { db } }: HooksRoutes,
  changes: Partial<DestinationsView> = {},
): Promise<View> {
  const view: DestinationsView = {
    destinations: await listDestinations(db),
    countedTo: COUNT_UP_TO,
    form: newForm(AddFields),
    ...changes,
  }
  return {
    page: () => destinationsPage(view),
    fragment: () => destinationsFragment(view),
    location: '/destinations',
  }
}
