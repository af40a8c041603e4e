import { settingsQueries } from '../../db/hooks/settings.ts'
import type { EndpointsView } from '../../html/hooks/endpoints.ts'
import { settingsForm, settingsPage, type SettingsParts } from '../../html/hooks/settings.ts'
import type { SettingsView } from '../../html/hooks/views.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Html } from '../../kernel/html.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { readSettingsForm } from '../../services/hooks/settings.ts'
import { readForm, wantsFullPage } from '../form.ts'
import { endpointRoutes, endpointsView } from './endpoints.ts'
import { hooksFault } from './faults.ts'
import { forwarderRoute, forwardersView } from './forwarders.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /settings`, `POST /settings` (hooks.md section 4) and the page's forms for endpoints. */
export function settingsRoutes(options: HooksRoutes): readonly Route[] {
  const { hooks, configuration } = options
  const { db, registry, retention } = hooks

  function view(changes: Partial<SettingsView>): SettingsView {
    const settings = registry.settings
    return { settings, saved: false, refused: null, configuration: configuration(), ...changes }
  }

  async function parts(changed?: EndpointsView): Promise<SettingsParts> {
    const [endpoints, forwarders] = await Promise.all([
      changed ?? endpointsView(options),
      forwardersView(options),
    ])
    return { endpoints, forwarders }
  }

  async function page(
    changes: Partial<SettingsView>,
    status = 200,
    typed?: URLSearchParams,
  ): Promise<Reply> {
    return htmlReply(settingsPage(view(changes), await parts(), typed), status)
  }

  /** The page around the answer to a form of its parts. */
  async function pageWith(endpoints?: EndpointsView): Promise<Html> {
    return settingsPage(view({}), await parts(endpoints))
  }

  async function save(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const wanted = readSettingsForm(form)
    if ('field' in wanted) {
      const fault = { status: 422, code: 'UNPROCESSABLE', detail: wanted.message }
      return wantsFullPage(context)
        ? page({ refused: wanted }, 422, form)
        : hooksFault(fault, context)
    }
    await settingsQueries.writeSettings(db, {
      retention_max_age_days: wanted.retention_max_age_days ?? null,
      retention_max_rows: wanted.retention_max_rows ?? null,
      sse_retry_ms: wanted.sse_retry_ms ?? null,
      replay_default_target: wanted.replay_default_target ?? null,
      sets_target: wanted.replay_default_target !== undefined,
    })
    await registry.refresh()
    retention.prune()
    const changes = { saved: true }
    return wantsFullPage(context) ? page(changes) : htmlReply(settingsForm(view(changes)))
  }

  return [
    {
      method: 'GET',
      path: '/settings',
      access: 'guarded',
      handle: async () => {
        await registry.refresh()
        return page({})
      },
    },
    { method: 'POST', path: '/settings', access: 'guarded', handle: save },
    ...endpointRoutes(options, pageWith),
    forwarderRoute(options, () => pageWith()),
  ]
}
