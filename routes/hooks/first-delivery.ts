import * as Type from '../../kernel/schema.ts'
import { rejectionQueries } from '../../db/hooks/receive/rejections.ts'
import { firstDelivery, firstPage, type FirstDelivery } from '../../html/hooks/first-delivery.ts'
import { notFound } from '../../kernel/fault.ts'
import { findEventStart } from '../../services/hooks/log/events/detail.ts'
import { findNewestOf } from '../../services/hooks/log/events/events.ts'
import { withPreviews } from '../../services/hooks/log/events/previews.ts'
import {
  createProvider,
  providerStatus,
  readProviders,
  receiverPath,
} from '../../services/hooks/receive/providers/providers.ts'
import { senderInfo } from '../../services/hooks/receive/schemes/describe.ts'
import { unguessableName } from '../../services/hooks/receive/schemes/keys.ts'
import { senderOf } from '../../services/hooks/receive/schemes/recognise.ts'
import { form, page, type HooksRoutes } from './kit.ts'
import { toolsOf } from './receive/providers/view.ts'

/** A URL with one click, and the wait for the first delivery of a provider. */
export const firstDeliveryEndpoints = [
  form({
    path: '/providers/new',
    async answer({ app, actor }) {
      const wanted = {
        name: unguessableName(app.hooks.random),
        proof: 'open',
        row: null,
        answers: {},
        secret: undefined,
        // The page says so beside the URL.
        acknowledgeOpen: true,
        enabled: true,
      }
      const { name } = await createProvider(toolsOf(app, actor), wanted)
      await app.hooks.registry.refresh()
      return { location: firstPath(name), done: ['created', name] }
    },
  }),

  page({
    path: '/providers/:name/first',
    params: { name: Type.String() },
    async answer({ app, params: { name } }) {
      const position = await app.hooks.stream.newest()
      const first = await readFirst(app, name)
      return { page: () => firstPage(first, position), fragment: () => firstDelivery(first) }
    },
  }),
]

/** The page that waits for a provider's delivery. */
export function firstPath(name: string): string {
  return `/providers/${encodeURIComponent(name)}/first`
}

/** What has come of a provider that has a URL so far. */
export async function readFirst(app: HooksRoutes, name: string): Promise<FirstDelivery> {
  const { db, clock, secrets } = app.hooks
  const rows = await readProviders(db, clock.now())
  const row = rows.find((one) => one.name === name && one.family === 'webhook')
  if (row === undefined) {
    throw notFound(`There is no provider "${name}" with a URL; see the list of providers.`)
  }
  const newest = { below: Number.MAX_SAFE_INTEGER, provider: name, limit: 1 }
  const [rejection] = await rejectionQueries.listRejections(db, newest)
  const { enabled } = providerStatus(row, secrets)
  return {
    name,
    url: app.baseUrl() + receiverPath(name),
    trust_mode: row.trust_mode,
    enabled,
    last_event_at: row.last_event_at,
    ...(await readNewest(app, name)),
    rejection,
  }
}

/** The newest event of a provider, and what its headers say of its sender. */
async function readNewest(
  { hooks: { db } }: HooksRoutes,
  name: string,
): Promise<Pick<FirstDelivery, 'event' | 'sender' | 'userAgent'>> {
  const newest = await findNewestOf(db, name)
  const start = newest && (await findEventStart(db, newest.id, 0))
  if (newest === undefined || start === undefined) {
    return { event: undefined, sender: undefined, userAgent: undefined }
  }
  const [event] = await withPreviews(db, [newest])
  const { headers } = start.event
  const preset = senderOf(headers)
  return { event, sender: preset && senderInfo(preset), userAgent: headers['user-agent'] }
}
