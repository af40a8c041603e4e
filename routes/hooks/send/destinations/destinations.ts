import * as Type from '../../../../kernel/schema.ts'
import { Destination, MEASURED } from '../../../../db/hooks/send/destinations.ts'
import {
  destinationsFragment,
  destinationsPage,
  type DestinationsView,
} from '../../../../html/hooks/send/destinations/destinations.ts'
import {
  MATCHES_PATH,
  matchesLine,
  type TestState,
} from '../../../../html/hooks/send/destinations/form.ts'
import {
  NEW_PATH,
  newDestinationFragment,
  newDestinationPage,
} from '../../../../html/hooks/send/destinations/new.ts'
import { entityTag, preconditionOf } from '../../../../kernel/http/headers.ts'
import type { Actor } from '../../../../kernel/actor.ts'
import { newForm, type FormState, type Typed, type View } from '../../../../kernel/http/view.ts'
import {
  addDestination,
  COUNT_UP_TO,
  enableDestination,
  findDestination,
  listDestinations,
  PAGE_COUNT_UP_TO,
  removeDestination,
  setDestination,
  type DestinationTools,
} from '../../../../services/hooks/send/destinations/destinations.ts'
import { countMatches } from '../../../../services/hooks/send/destinations/matches.ts'
import {
  DestinationForm,
  DestinationUpdate,
} from '../../../../services/hooks/send/destinations/form.ts'
import { withDefault } from '../../../../kernel/validate.ts'
import { action, api, page, Switch, type HooksRoutes } from '../../kit.ts'
import { AddFields, SetFields, toBody, toNewBody, withoutSecrets } from './form.ts'
import { destinationView, formHelp, params, path, providerNames, refuses, usual } from './view.ts'

const text = withDefault(Type.String(), '')
/** The filters of a form, as they are typed. */
const FILTER_TEXTS = {
  provider: text,
  providers: text,
  event_type: text,
  event_types: text,
  json: text,
}
/** What a link to the form of a new destination may fill in. */
const PREFILLED = { provider: text, event_type: text, json: text }

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

  page({
    path: NEW_PATH,
    query: Type.Object(PREFILLED),
    answer: ({ app, query }) => newView(app, newForm(AddFields, query)),
  }),

  // A filter may not be complete while it is typed: any text is taken.
  page({
    path: MATCHES_PATH,
    query: Type.Object(FILTER_TEXTS),
    async answer({ app, query }) {
      const matches = await countMatches(app.hooks.db, query)
      const page = { title: 'Matches', section: 'destinations', body: matchesLine(matches) }
      return { page: () => page, fragment: () => matchesLine(matches) }
    },
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
      toBody: ({ body }) => toNewBody(body),
      answer: (_, { name }) => ({ location: `/destinations/${name}`, done: ['added', name] }),
      refused: ({ app }, refused) => newView(app, shownAgain(refused)),
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
      replaces: {
        current: ({ app, params: { name } }) => findDestination(app.hooks.db, name),
        mayDiffer: MEASURED,
      },
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
export function shownAgain(form: FormState & { typed: Typed }): FormState {
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

async function destinationsView(app: HooksRoutes): Promise<View> {
  const view: DestinationsView = {
    destinations: await listDestinations(app.hooks.db, null, PAGE_COUNT_UP_TO),
    countedTo: PAGE_COUNT_UP_TO,
    providers: await providerNames(app),
  }
  return {
    page: () => destinationsPage(view),
    fragment: () => destinationsFragment(view),
    location: '/destinations',
  }
}

/** The page on which a destination is added. */
export async function newView(
  app: HooksRoutes,
  form: FormState,
  tested?: TestState,
): Promise<View> {
  const view = { form, help: await formHelp(app, form, tested) }
  return {
    page: () => newDestinationPage(view),
    fragment: () => newDestinationFragment(view),
  }
}
