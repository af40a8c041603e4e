import Type from 'typebox'
import { endpointQueries } from '../../db/hooks/endpoints.ts'
import { forwarderQueries } from '../../db/hooks/forwarders.ts'
import { endpointsFragment, type EndpointsView } from '../../html/hooks/endpoints.ts'
import { forwardersFragment, type ForwardersView } from '../../html/hooks/forwarders.ts'
import {
  settingsForm,
  settingsPage,
  type SettingsParts,
  type SettingsView,
} from '../../html/hooks/settings.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import { newForm } from '../../kernel/http/endpoint.ts'
import type { View } from '../../kernel/http/view.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import {
  clientConfiguration,
  createEndpoint,
  endpointUrl,
  revokeEndpoint,
} from '../../services/hooks/endpoints.ts'
import { SettingsForm, writeSettings } from '../../services/hooks/settings.ts'
import { anyone } from '../../kernel/http/endpoint.ts'
import { form, page, type HooksRoutes } from './endpoint.ts'

/** Waiting events are counted up to here: beyond, it is enough to know that there are many. */
const COUNT_UP_TO = 1_000
const MAX_FORWARDERS = 1_000

const NewEndpoint = Type.Object({
  name: field(Type.String(), 'must be given'),
  allow_replay: withDefault(Type.Boolean(), false),
})

/** The settings page (hooks.md section 4), with the forms of endpoints and forwarders. */
export const settingsEndpoints = [
  page({
    path: '/settings',
    access: anyone,
    async answer({ app }) {
      await app.hooks.registry.refresh()
      return settingsView(app)
    },
  }),

  form({
    path: '/settings',
    access: anyone,
    body: SettingsForm,
    async answer({ app, body }) {
      const { db, registry, retention } = app.hooks
      await writeSettings(db, body)
      await registry.refresh()
      retention.prune()
      return settingsView(app, { saved: true })
    },
    refused: ({ app }, refused) => settingsView(app, { form: refused }),
  }),

  form({
    path: '/settings/endpoints',
    access: anyone,
    body: NewEndpoint,
    async answer({ app, body }) {
      const { db, random, registry } = app.hooks
      const name = body.name.trim()
      const created = await createEndpoint(db, random, { name, may_replay: body.allow_replay })
      await registry.refresh()
      const url = endpointUrl(app.baseUrl(), name)
      const configuration = clientConfiguration(url, name, created.token)
      return endpointsView(app, { created: { ...created, url, configuration } })
    },
    refused: ({ app }, refused) => endpointsView(app, { form: refused }),
  }),

  form({
    path: '/settings/endpoints/:name/revoke',
    access: anyone,
    params: { name: Type.String() },
    async answer({ app, params }) {
      await revokeEndpoint(app.hooks.db, params.name)
      await app.hooks.registry.refresh()
      return endpointsView(app)
    },
  }),

  form({
    path: '/settings/forwarders/:name/forget',
    access: anyone,
    params: { name: Type.String() },
    async answer({ app, params: { name } }) {
      // A connected forwarder would be told that another one had taken its name.
      if (app.hooks.forwarders.names.includes(name)) {
        throw new Fault(409, 'CONNECTED', 'The forwarder is connected; stop it first.')
      }
      if ((await forwarderQueries.removeForwarder(app.hooks.db, { name })) === undefined) {
        throw notFound('There is no forwarder under this name.')
      }
      const forwarders = await readForwarders(app)
      return {
        page: async () => settingsPage(viewOf(app), await readParts(app, { forwarders })),
        fragment: () => forwardersFragment(forwarders),
      }
    },
  }),
]

function settingsView(app: HooksRoutes, changes: Partial<SettingsView> = {}): View {
  const view = viewOf(app, changes)
  return {
    page: async () => settingsPage(view, await readParts(app)),
    fragment: () => settingsForm(view),
  }
}

async function endpointsView(
  app: HooksRoutes,
  changes: Partial<EndpointsView> = {},
): Promise<View> {
  const endpoints = await readEndpoints(app, changes)
  return {
    page: async () => settingsPage(viewOf(app), await readParts(app, { endpoints })),
    fragment: () => endpointsFragment(endpoints),
  }
}

function viewOf(
  { hooks, configuration }: HooksRoutes,
  changes: Partial<SettingsView> = {},
): SettingsView {
  const present = Object.entries(hooks.registry.settings).map(
    ([name, value]) => [name, String(value ?? '')] as const,
  )
  return {
    form: newForm(SettingsForm, Object.fromEntries(present)),
    saved: false,
    configuration: configuration(),
    ...changes,
  }
}

async function readParts(
  app: HooksRoutes,
  { endpoints, forwarders }: Partial<SettingsParts> = {},
): Promise<SettingsParts> {
  return {
    endpoints: endpoints ?? (await readEndpoints(app)),
    forwarders: forwarders ?? (await readForwarders(app)),
  }
}

async function readEndpoints(
  { hooks, baseUrl }: HooksRoutes,
  changes: Partial<EndpointsView> = {},
): Promise<EndpointsView> {
  const endpoints = await endpointQueries.listEndpoints(hooks.db, {})
  return { endpoints, baseUrl: baseUrl(), form: newForm(NewEndpoint), ...changes }
}

async function readForwarders({ hooks, baseUrl }: HooksRoutes): Promise<ForwardersView> {
  const forwarders = await forwarderQueries.listForwarders(hooks.db, {
    count_up_to: COUNT_UP_TO,
    limit: MAX_FORWARDERS,
  })
  const connected = hooks.forwarders.names
  return { forwarders, connected, countedTo: COUNT_UP_TO, baseUrl: baseUrl() }
}
