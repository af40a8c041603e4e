import * as Type from '../../kernel/schema.ts'
import { Destination } from '../../db/hooks/send/destinations.ts'
import { EventSummary } from '../../db/hooks/log/events.ts'
import { Search } from '../../db/hooks/log/searches.ts'
import { HourStats } from '../../db/hooks/log/stats.ts'
import type { ApiDescription, Operation, ReplyDescription } from '../../kernel/openapi.ts'
import { DeliveryList, RetryRequest } from '../../services/hooks/send/destinations/deliveries.ts'
import { EventDetail } from '../../services/hooks/log/events/detail.ts'
import { EventList } from '../../services/hooks/log/events/events.ts'
import { ProviderStatus } from '../../services/hooks/receive/providers/providers.ts'
import { ReplayJob } from '../../services/hooks/send/replays/jobs.ts'
import { Sent } from '../../services/hooks/send/replays/replays.ts'
import { Health } from '../../services/hooks/log/status.ts'
import { IngestAck } from './receive/deliveries/operations.ts'
import { Retried } from './send/destinations/deliveries.ts'
import { DestinationList } from './send/destinations/destinations.ts'
import { Switch } from './kit.ts'
import { ReplayedEvents, ReplayJobList, ReplayJobRequest } from './send/replays/jobs.ts'
import { ReplayRequest } from './send/replays/replays.ts'
import { SearchList } from './log/searches.ts'

/** hooks.md section 2, Problem. */
const Problem = Type.Object({
  type: Type.String(),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  instance: Type.String(),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'Something in the path, the query or the body can not be read',
  401: 'The signature or the token is missing, malformed, stale or wrong',
  403: 'Not for this caller; or the provider is disabled, or its token or signature is wrong',
  404: 'It does not exist, or is not configured',
  405: 'The operator has chosen other methods',
  409: 'Too many replay jobs run, or destinations are there; or the name is taken',
  412: 'It has changed since the version in If-Match; nothing was changed',
  413: 'The body is too large',
  415: 'The body must be JSON',
  422: 'What the body asks for is not possible',
  503: 'The database is out of reach, or too much comes at once: to be sent again',
}

/** The API's document: the endpoints for programs; pages and tools (MCP) are not among them. */
export function describeHooks(
  version: string,
  operations: readonly Operation[],
): Omit<ApiDescription, 'servers'> {
  const refusals = Object.entries(REFUSALS).map(([status, description]) => {
    return [status, { description, schema: Problem, type: 'application/problem+json' }] as const
  })
  return {
    title: 'Gatehouse hooks',
    version,
    description:
      'Webhook receivers, and the events that they have stored: to list, to read, to send again ' +
      'and to follow. From this machine and behind the sign-in no token is needed.',
    tags: {
      Receivers: 'Where senders deliver',
      Events: 'What was delivered',
      Searches: 'Filters of the log under a name, which all people see',
      Providers: 'Who may deliver, and who did',
      Destinations: 'Where events are delivered onwards; never with a token',
      Health: 'For monitoring',
    },
    operations,
    schemas: {
      IngestAck,
      EventSummary,
      EventList,
      EventDetail,
      Search,
      SearchList,
      ReplayRequest,
      Sent,
      ReplayJobRequest,
      ReplayedEvents,
      ReplayJob,
      ReplayJobList,
      ProviderStatus,
      HourStats,
      Destination,
      DestinationList,
      DeliveryList,
      Switch,
      RetryRequest,
      Retried,
      Health,
      Problem,
    },
    refusals: Object.fromEntries<ReplyDescription>(refusals),
    tokens: 'The token of an endpoint, of the settings page or of `gatehouse endpoint add NAME`',
  }
}
