import { endpointQueries } from '../../db/hooks/agents/endpoints.ts'
import { forwarderQueries } from '../../db/hooks/send/forwarders.ts'
import { settingsForm, settingsPage, type SettingsView } from '../../html/hooks/settings.ts'
import type { Html } from '../../kernel/html.ts'
import { newForm, type View } from '../../kernel/http/view.ts'
import { EndpointForm } from '../../services/hooks/agents/endpoints/changes.ts'
import { changeSettings, SettingsForm } from '../../services/hooks/settings.ts'
import { form, page, type HooksRoutes } from './kit.ts'

/** Waiting events are counted up to here; the page then says "or more". */
const COUNT_UP_TO = 1_000
const MAX_FORWARDERS = 1_000

/** The settings page (hooks.md section 4). */
export const settingsEndpoints = [
  page({
    path: '/settings',
    async answer({ app }) {
      await app.hooks.registry.refresh()
      return settingsView(app, settingsForm)
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
      return { ...(await settingsView(app, settingsForm)), done: ['saved'] }
    },
    refused: ({ app }, refused) => settingsView(app, settingsForm, { form: refused }),
  }),
]

/** The whole page, and the part of it that shows what a form has changed. */
export async function settingsView(
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
    newEndpoint: newForm(EndpointForm),
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
    ...(view.made === undefined && { location: '/settings' }),
  }
}
