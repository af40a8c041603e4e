import { listForwarders, removeForwarder } from '../../db/hooks/forwarders.ts'
import { forwardersFragment, type ForwardersView } from '../../html/hooks/forwarders.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Html } from '../../kernel/html.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { wantsFullPage } from '../form.ts'
import { hooksFault, notFound } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** Beyond this it is enough to know that there are many. */
const COUNTED_TO = 1_000

/** Reads what the settings page shows of forwarding. */
export async function forwardersView({ hooks, baseUrl }: HooksRoutes): Promise<ForwardersView> {
  const forwarders = await listForwarders(hooks.db, COUNTED_TO)
  return { forwarders, connected: hooks.relay.names, countedTo: COUNTED_TO, baseUrl: baseUrl() }
}

/** The form of the settings page that forgets a forwarder; `page` is the page around the list. */
export function forwarderRoute(options: HooksRoutes, page: () => Promise<Html>): Route {
  const { db, relay } = options.hooks

  async function forget(context: Context): Promise<Reply> {
    const name = context.params['name'] ?? ''
    // It would be told that another one had taken its name.
    if (relay.names.includes(name)) return hooksFault(CONNECTED, context)
    if (!(await removeForwarder(db, name))) return hooksFault(UNKNOWN, context)
    if (wantsFullPage(context)) return htmlReply(await page())
    return htmlReply(forwardersFragment(await forwardersView(options)))
  }

  return {
    method: 'POST',
    path: '/settings/forwarders/:name/forget',
    access: 'guarded',
    handle: forget,
  }
}

const CONNECTED = {
  status: 409,
  code: 'CONNECTED',
  detail: 'The forwarder is connected; stop it first.',
} as const
const UNKNOWN = notFound('There is no forwarder under this name.')
