import { endpointQueries } from '../../db/hooks/endpoints.ts'
import { Fault } from '../../kernel/fault.ts'
import { endpointsFragment, type EndpointsView } from '../../html/hooks/endpoints.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Html } from '../../kernel/html.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import {
  clientConfiguration,
  createEndpoint,
  endpointUrl,
  revokeEndpoint,
} from '../../services/hooks/endpoints.ts'
import { isTicked, readForm, wantsFullPage } from '../form.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** Reads what the settings page shows of the endpoints. */
export async function endpointsView(
  { hooks, baseUrl }: HooksRoutes,
  changes: Partial<EndpointsView> = {},
): Promise<EndpointsView> {
  const endpoints = await endpointQueries.listEndpoints(hooks.db, {})
  return { endpoints, baseUrl: baseUrl(), made: null, refused: null, ...changes }
}

/** The forms of the settings page that make and revoke endpoints; `page` is the page around them. */
export function endpointRoutes(
  options: HooksRoutes,
  page: (endpoints: EndpointsView) => Promise<Html>,
): readonly Route[] {
  const { hooks, baseUrl } = options
  const { db, random, registry } = hooks

  /** The fragment, or the page around it for a browser without script. */
  async function answer(
    context: Context,
    changes: Partial<EndpointsView>,
    status = 200,
  ): Promise<Reply> {
    const view = await endpointsView(options, changes)
    const shown = wantsFullPage(context) ? await page(view) : endpointsFragment(view)
    return htmlReply(shown, status)
  }

  async function create(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const name = (form.get('name') ?? '').trim()
    const may_replay = isTicked(form, 'allow_replay')
    try {
      const made = await createEndpoint(db, random, { name, may_replay })
      await registry.refresh()
      const url = endpointUrl(baseUrl(), name)
      const configuration = clientConfiguration(url, name, made.token)
      return await answer(context, { made: { ...made, url, configuration } })
    } catch (error) {
      if (!(error instanceof Fault) || !wantsFullPage(context)) throw error
      const refused = { name, may_replay, message: error.message }
      return answer(context, { refused }, error.status)
    }
  }

  async function revoke(context: Context): Promise<Reply> {
    await revokeEndpoint(db, context.params['name'] ?? '')
    await registry.refresh()
    return answer(context, {})
  }

  const base = '/settings/endpoints'
  return [
    { method: 'POST', path: base, access: 'guarded', handle: create },
    { method: 'POST', path: `${base}/:name/revoke`, access: 'guarded', handle: revoke },
  ]
}
