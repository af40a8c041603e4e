import { rejectionQueries, UNKNOWN_PROVIDER } from '../../../../db/hooks/receive/rejections.ts'
import {
  rejectionsFragment,
  rejectionsPage,
  type ExplainedGroup,
} from '../../../../html/hooks/log/events/rejected.ts'
import type { Context } from '../../../../kernel/http/context.ts'
import type { View } from '../../../../kernel/http/view.ts'
import {
  cursorAt,
  readCursor,
  type LogQuery,
} from '../../../../services/hooks/log/events/filter.ts'
import {
  expectedOf,
  explain,
  missingProvider,
} from '../../../../services/hooks/receive/schemes/explain.ts'
import { readList } from './list.ts'
import type { HooksRoutes } from '../../kit.ts'

/** What is grouped: rows that are read, days that they are from, and kinds that are shown. */
const GROUPED = { among: 2_000, days: 7, kinds: 30 }
const DAY_MS = 86_400_000

/** `/log?rejected=1`: the rejected deliveries, alike ones together, and all newest first. */
export async function rejectionsView(
  app: HooksRoutes,
  query: LogQuery,
  context: Context,
): Promise<View> {
  const { db } = app.hooks
  const provider = query.provider === '' ? null : query.provider
  const rows = await rejectionQueries.listRejections(db, {
    below: readCursor(query.cursor),
    provider,
    limit: query.limit + 1,
  })
  const rejections = rows.slice(0, query.limit)
  const last = rows.length > query.limit ? rejections.at(-1) : undefined
  const cursor = last === undefined ? null : cursorAt(last.id)
  const groups = query.cursor === '' ? await readGroups(app, provider) : []
  const view = { groups, rejections, ...(await readList(db, query, context, cursor)) }
  return { page: () => rejectionsPage(view), fragment: () => rejectionsFragment(view) }
}

async function readGroups(
  { hooks: { db, clock, registry } }: HooksRoutes,
  provider: string | null,
): Promise<readonly ExplainedGroup[]> {
  const { among, days, kinds } = GROUPED
  const since = new Date(clock.now().getTime() - days * DAY_MS)
  const unknown = UNKNOWN_PROVIDER
  const groups = await rejectionQueries.groupRejections(db, {
    provider,
    among,
    since,
    unknown,
    kinds,
  })
  return groups.map((group) => {
    const row = registry.provider(group.provider)
    const missing = missingProvider(group.reason)
    const isAdded = missing !== undefined && registry.provider(`generic:${missing}`) !== undefined
    return {
      ...group,
      ...explain(group.reason),
      expected: expectedOf(row),
      isKnown: row !== undefined,
      missing: isAdded ? undefined : missing,
    }
  })
}
