import {
  settingsForm,
  settingsPage,
  type SettingsParts,
  type SettingsView,
} from '../../html/hooks/settings.ts'
import type { Html } from '../../kernel/html.ts'
import { newForm } from '../../kernel/http/endpoint.ts'
import type { View } from '../../kernel/http/view.ts'
import { SettingsForm, writeSettings } from '../../services/hooks/settings.ts'
import { endpointsView } from './endpoints.ts'
import { form, operator, page, type HooksRoutes } from './endpoint.ts'
import { forwardersView } from './forwarders.ts'

/** `GET /settings` and `POST /settings` (hooks.md section 4). */
export const settingsEndpoints = [
  page({
    path: '/settings',
    access: operator,
    async answer({ app }) {
      await app.hooks.registry.refresh()
      return settingsView(app)
    },
  }),

  form({
    path: '/settings',
    access: operator,
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
]

/** The whole page around a part of it that was changed. */
export async function settingsPageWith(
  app: HooksRoutes,
  parts: Partial<SettingsParts>,
): Promise<Html> {
  return settingsPage(viewOf(app), await partsOf(app, parts))
}

function settingsView(app: HooksRoutes, changes: Partial<SettingsView> = {}): View {
  const view = viewOf(app, changes)
  return {
    page: async () => settingsPage(view, await partsOf(app)),
    fragment: () => settingsForm(view),
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

async function partsOf(
  app: HooksRoutes,
  { endpoints, forwarders }: Partial<SettingsParts> = {},
): Promise<SettingsParts> {
  return {
    endpoints: endpoints ?? (await endpointsView(app)),
    forwarders: forwarders ?? (await forwardersView(app)),
  }
}
