import * as Type from '../../../kernel/schema.ts'
import { HourStats } from '../../../db/hooks/log/stats.ts'
import { field, withDefault } from '../../../kernel/validate.ts'
import { filterFields } from '../../../services/hooks/log/events/filter.ts'
import { RECENT_HOURS } from '../../../services/hooks/receive/providers/providers.ts'
import { MAX_STATS_HOURS, statsOf } from '../../../services/hooks/log/stats.ts'
import { reader } from '../access.ts'
import { api } from '../kit.ts'

const StatsQuery = Type.Object({
  provider: filterFields.provider,
  hours: field(
    withDefault(Type.Integer({ minimum: 1, maximum: MAX_STATS_HOURS }), RECENT_HOURS),
    `must be a whole number from 1 to ${MAX_STATS_HOURS}.`,
  ),
})

/** The counts of the dashboard, for programs. */
export const statsEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/stats',
    access: reader,
    id: 'getStats',
    tag: 'Providers',
    summary: 'Count the events and the rejected deliveries of each provider by hour.',
    description:
      'Hours in UTC, the oldest first and the current one last. An hour without events and ' +
      'rejections is left out. The counts are those of the last hours to the minute, so the ' +
      'oldest hour may be cut. The provider "unknown" stands for paths that lead to none.',
    query: StatsQuery,
    returns: {
      description: 'The counts',
      schema: Type.Object({ stats: Type.Array(HourStats) }),
    },
    answer: async ({ app, query, now }) => ({ stats: await statsOf(app.hooks.db, now, query) }),
  }),
]
