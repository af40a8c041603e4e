import * as Type from '../../../../../kernel/schema.ts'
import { HourStats } from '../../../../../db/hooks/log/stats.ts'
import { READ_ONLY, defineTool, toolValue, type Tool } from '../../../../../kernel/mcp/server.ts'
import { notFound } from '../../../../../kernel/fault.ts'
import {
  ProviderStatus,
  providerStatus,
  readProviders,
  RECENT_HOURS,
} from '../../../receive/providers/providers.ts'
import { MAX_STATS_HOURS, statsOf } from '../../../log/stats.ts'
import { ProviderHealth, providerHealth } from '../../../log/status.ts'
import { ProviderName } from './arguments.ts'
import type { ToolParts } from './parts.ts'

/** `list_providers`: who may send, and whether they can. */
export function providersTool({ db, clock, secrets }: ToolParts): Tool {
  return defineTool({
    name: 'list_providers',
    title: 'List webhook providers',
    description:
      'Lists the senders of webhooks: how each is trusted, whether it is enabled, whether its ' +
      'secret is configured (never the secret), and the path or channel it sends to.',
    input: {},
    output: Type.Object({ providers: Type.Array(ProviderStatus) }),
    annotations: READ_ONLY,
    async call() {
      const rows = await readProviders(db, clock.now())
      return toolValue({ providers: rows.map((row) => providerStatus(row, secrets)) })
    },
  })
}

/** `get_webhook_stats`: how much came, and how much was refused. */
export function statsTool({ db, clock }: ToolParts): Tool {
  return defineTool({
    name: 'get_webhook_stats',
    title: 'Get webhook statistics',
    description:
      'Counts the events and the rejected deliveries of each provider by hour (UTC), oldest ' +
      'first. Hours without events and rejections are left out; the last hour is the current ' +
      'one, and the oldest one may be cut. The provider "unknown" stands for paths that lead to none.',
    input: {
      provider: Type.Optional(ProviderName),
      hours: Type.Optional(
        Type.Integer({ minimum: 1, maximum: MAX_STATS_HOURS, default: RECENT_HOURS }),
      ),
    },
    output: Type.Object({ stats: Type.Array(HourStats) }),
    annotations: READ_ONLY,
    call: async (wanted) => toolValue({ stats: await statsOf(db, clock.now(), wanted) }),
  })
}

/** `get_provider_health`: whether what a sender sends comes in. */
export function healthTool({ db, clock, secrets, queue }: ToolParts): Tool {
  return defineTool({
    name: 'get_provider_health',
    title: 'Get the health of webhook providers',
    description:
      'Says of each provider, or of one, whether its webhooks can come in, and whether they ' +
      `did: events and rejected deliveries of the last ${RECENT_HOURS} hours, the time ` +
      'of the last event, and the alarms that an operator has set. "ready" alone does not mean ' +
      'that a provider sends.',
    input: { provider: Type.Optional(ProviderName) },
    output: Type.Object({ providers: Type.Array(ProviderHealth) }),
    annotations: READ_ONLY,
    async call({ provider }) {
      const now = clock.now()
      const rows = await readProviders(db, now)
      const wanted = rows.filter(({ name }) => provider === undefined || name === provider)
      if (provider !== undefined && wanted.length === 0) {
        throw notFound('There is no provider under this name; see list_providers.')
      }
      const providers = wanted.map((row) => providerHealth(row, secrets, queue.broker, now))
      return toolValue({ providers })
    },
  })
}
