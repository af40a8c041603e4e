import Type from 'typebox'
import { endpointQueries } from '../../db/hooks/endpoints.ts'
import { endpointsFragment, type EndpointsView } from '../../html/hooks/endpoints.ts'
import type { Html } from '../../kernel/html.ts'
import type { Endpoint } from '../../kernel/http/endpoint.ts'
import type { View } from '../../kernel/http/view.ts'
import { field, withDefault } from '../../kernel/validate.ts'
import {
  clientConfiguration,
  createEndpoint,
  endpointUrl,
  revokeEndpoint,
} from '../../services/hooks/endpoints.ts'
import { form, operator, type HooksRoutes } from './endpoint.ts'

/** Reads what the settings page shows of the endpoints. */
export async function endpointsView(
  { hooks, baseUrl }: HooksRoutes,
  changes: Partial<EndpointsView> = {},
): Promise<EndpointsView> {
  const endpoints = await endpointQueries.listEndpoints(hooks.db, {})
  return { endpoints, baseUrl: baseUrl(), made: null, refused: null, ...changes }
}

const NewEndpoint = Type.Object({
  name: field(Type.String(), 'must be given'),
  allow_replay: withDefault(Type.Boolean(), false),
})

/** The forms of the settings page that create and revoke endpoints; `pageWith` is the page around. */
export function endpointForms(
  pageWith: (app: HooksRoutes, parts: { readonly endpoints: EndpointsView }) => Promise<Html>,
): readonly Endpoint<HooksRoutes>[] {
  async function viewOf(app: HooksRoutes, changes: Partial<EndpointsView>): Promise<View> {
    const endpoints = await endpointsView(app, changes)
    return {
      page: () => pageWith(app, { endpoints }),
      fragment: () => endpointsFragment(endpoints),
    }
  }

  return [
    form({
      path: '/settings/endpoints',
      access: operator,
      body: NewEndpoint,
      async answer({ app, body }) {
        const { db, random, registry } = app.hooks
        const name = body.name.trim()
        const created = await createEndpoint(db, random, { name, may_replay: body.allow_replay })
        await registry.refresh()
        const url = endpointUrl(app.baseUrl(), name)
        const configuration = clientConfiguration(url, name, created.token)
        return viewOf(app, { made: { ...created, url, configuration } })
      },
      refused({ app }, { typed, fault: { message } }) {
        const may_replay = ['on', 'true', '1'].includes(typed['allow_replay'] ?? '')
        return viewOf(app, { refused: { name: typed['name'] ?? '', may_replay, message } })
      },
    }),

    form({
      path: '/settings/endpoints/:name/revoke',
      access: operator,
      params: { name: Type.String() },
      async answer({ app, params }) {
        await revokeEndpoint(app.hooks.db, params.name)
        await app.hooks.registry.refresh()
        return viewOf(app, {})
      },
    }),
  ]
}
