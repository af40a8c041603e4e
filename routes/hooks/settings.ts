import Type from 'typebox'
import { endpointQueries } from '../../db/hooks/endpoints.ts'
import { forwarderQueries } from '../../db/hooks/forwarders.ts'
import { endpointsFragment } from '../../html/hooks/endpoints.ts'
import { forwardersFragment } from '../../html/hooks/forwarders.ts'
import { settingsForm, settingsPage, type SettingsView } from '../../html/hooks/settings.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Html } from '../../kernel/html.ts'
import { newForm, type View } from '../../kernel/http/view.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import {
  clientConfiguration,
  createEndpoint,
  revokeEndpoint,
} from '../../services/hooks/endpoints/changes.ts'
import { forgetForwarder } from '../../services/hooks/forwarders/forwarders.ts'
import { changeSettings, SettingsForm } from '../../services/hooks/settings.ts'
import { form, page, type HooksRoutes } from './kit.ts'

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
    /** `1` after a form without script. */
    query: Type.Object({ saved: withDefault(Type.String(), '') }),
    async answer({ app, query }) {
      await app.hooks.registry.refresh()
      return settingsView(app, settingsForm, { saved: query.saved === '1' })
    },
  }),

  form({
    path: '/settings',
    body: SettingsForm,
    async answer({ app, actor, body }) {
      const { registry, retention } = app.hooks
      await changeSettings({ ...app.hooks, actor }, body)
      await registry.refresh()
      retention.prune()
      return settingsView(app, settingsForm, { saved: true })
    },
    refused: ({ app }, refused) => settingsView(app, settingsForm, { form: refused }),
  }),

  form({
    path: '/settings/endpoints',
    body: NewEndpoint,
    async answer({ app, actor, body }) {
      const name = body.name.trim()
      const wanted = { name, may_replay: body.allow_replay }
      const created = await createEndpoint({ ...app.hooks, actor }, wanted)
      await app.hooks.registry.refresh()
      const configuration = clientConfiguration(app.baseUrl(), name, created.token)
      const made = { ...created, configuration }
      return settingsView(app, endpointsFragment, { made })
    },
    refused: ({ app }, refused) => settingsView(app, endpointsFragment, { newEndpoint: refused }),
  }),

  form({
    path: '/settings/endpoints/:name/revoke',
    params: { name: Type.String() },
    async answer({ app, actor, params }) {
      await revokeEndpoint({ ...app.hooks, actor }, params.name)
      await app.hooks.registry.refresh()
      return settingsView(app, endpointsFragment)
    },
  }),

  form({
    path: '/settings/forwarders/:name/forget',
    params: { name: Type.String() },
    async answer({ app, actor, params: { name } }) {
      // A connected forwarder would be told that another one had taken its name.
      if (app.hooks.forwarders.names().includes(name)) {
        throw new Fault(409, 'CONNECTED', 'The forwarder is connected; stop it first.')
      }
      await forgetForwarder({ ...app.hooks, actor }, name)
      return settingsView(app, forwardersFragment)
    },
  }),
]

/** The whole page, and the part of it that shows what a form has changed. */
async function settingsView(
  app: HooksRoutes,
  part: (view: SettingsView) => Html,
  changes: Partial<SettingsView> = {},
): Promise<View> {
  const { db, registry, forwarders } = app.hooks
  const present = Object.entries(registry.settings).map(([name, value]) => [
    name,
    String(value ?? ''),
  ])
  const view: SettingsView = {
    form: newForm(SettingsForm, Object.fromEntries(present)),
    configuration: app.configuration(),
    endpoints: await endpointQueries.listEndpoints(db, {}),
    newEndpoint: newForm(NewEndpoint),
    forwarders: await forwarderQueries.listForwarders(db, {
      count_up_to: COUNT_UP_TO,
      limit: MAX_FORWARDERS,
    }),
    connected: forwarders.names(),
    countedTo: COUNT_UP_TO,
    baseUrl: app.baseUrl(),
    ...changes,
  }
  return {
    page: () => settingsPage(view),
    fragment: () => part(view),
    ...(view.made === undefined && { location: view.saved ? '/settings?saved=1' : '/settings' }),
  }
}
