import * as Type from '../../../../kernel/schema.ts'
import { readPage, type SenderApi } from './api.ts'
import {
  providerAt,
  refuseNone,
  type FailedDelivery,
  type Found,
  type Receivers,
  type Search,
} from './found.ts'

// What Stripe documents at https://docs.stripe.com/webhooks/process-undelivered-events.

const Endpoint = Type.Object({
  id: Type.String({ pattern: '^\\w{1,100}$' }),
  url: Type.String(),
  created: Type.Integer(),
  livemode: Type.Boolean(),
  enabled_events: Type.Array(Type.String()),
})
type Endpoint = Type.Static<typeof Endpoint>
const Endpoints = Type.Object({ data: Type.Array(Endpoint), has_more: Type.Boolean() })

const Event = Type.Object({
  id: Type.String({ maxLength: 200 }),
  type: Type.String({ maxLength: 200 }),
  created: Type.Integer({ minimum: 0, maximum: 253_402_300_799 }),
  pending_webhooks: Type.Integer(),
})
type Event = Type.Static<typeof Event>
const Events = Type.Object({ data: Type.Array(Event), has_more: Type.Boolean() })

/** An endpoint that leads here. */
interface OwnEndpoint extends Endpoint {
  provider: string
}

const MAX_ENDPOINT_PAGES = 10
/** 10,000 events. */
const MAX_PAGES = 200
const PAGE = 50

/** Which of some delivery ids of a provider the log does not have. */
type FindMissing = (provider: string, ids: readonly string[]) => Promise<readonly string[]>

/**
 * Finds the events that Stripe did not deliver and that the log does not have. Stripe documents no
 * call that resends one; its own command line does that, and is what the advice names. An event that
 * was read through the API has no signature, so it is not stored.
 */
export async function recoverFromStripe(
  api: SenderApi,
  { receivers, since }: Search,
  findMissing: FindMissing,
): Promise<Found> {
  const endpoints = await listEndpoints(api, receivers)
  refuseNone(endpoints, 'this Stripe account', receivers)
  const { events, isWhole } = await listEvents(api, since)
  const deliveries: FailedDelivery[] = []
  const advice: string[] = []
  for (const endpoint of endpoints) {
    const sent = events.filter((event) => isSentTo(endpoint, event))
    const ids = sent.map(({ id }) => id)
    const missing = new Set(await findMissing(endpoint.provider, ids))
    const rows = sent.filter(({ id }) => missing.has(id)).toReversed()
    deliveries.push(...rows.map((event) => toDelivery(endpoint.provider, event)))
    if (rows.length > 0) advice.push(adviceFor(endpoint))
  }
  const problem = isWhole ? null : `only the newest ${events.length} undelivered events were read`
  const providers = endpoints.map(({ provider }) => provider)
  return { providers, deliveries, problem, waitMs: 0, advice }
}

async function listEndpoints(api: SenderApi, receivers: Receivers) {
  const own: OwnEndpoint[] = []
  const query = new URLSearchParams({ limit: '100' })
  for (let pages = 0; pages < MAX_ENDPOINT_PAGES; pages++) {
    const { value } = await readPage(api, Endpoints, '/v1/webhook_endpoints', query)
    for (const endpoint of value.data) {
      const provider = providerAt(endpoint.url, receivers)
      if (provider !== undefined) own.push({ ...endpoint, provider })
    }
    const last = value.data.at(-1)
    if (!value.has_more || last === undefined) break
    query.set('starting_after', last.id)
  }
  return own
}

/** Events that some endpoint did not get, newest first. */
async function listEvents(api: SenderApi, since: Date) {
  const events: Event[] = []
  const query = new URLSearchParams({
    delivery_success: 'false',
    limit: String(PAGE),
    'created[gte]': String(Math.floor(since.getTime() / 1_000)),
  })
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const { value } = await readPage(api, Events, '/v1/events', query)
    // Pages have whole events: only what is used is kept.
    for (const { id, type, created, pending_webhooks } of value.data) {
      events.push({ id, type, created, pending_webhooks })
    }
    const last = value.data.at(-1)
    if (!value.has_more || last === undefined) return { events, isWhole: true }
    query.set('starting_after', last.id)
  }
  return { events, isWhole: false }
}

/** Stripe resends an event to endpoints alone that wanted it when it was made. */
function isSentTo({ enabled_events: types, created }: OwnEndpoint, event: Event): boolean {
  return event.created >= created && (types.includes('*') || types.includes(event.type))
}

function toDelivery(provider: string, event: Event): FailedDelivery {
  return {
    provider,
    id: event.id,
    type: event.type,
    at: new Date(event.created * 1_000).toISOString(),
    status: `${event.pending_webhooks} pending`,
    outcome: 'not asked for',
  }
}

function adviceFor({ provider, id, livemode }: OwnEndpoint): string {
  const live = livemode ? ' --live' : ''
  const command = `stripe events resend EVENT --webhook-endpoint=${id}${live}`
  return `to resend an event of ${provider}: ${command}`
}
