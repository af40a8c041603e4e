import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { rejectionsFragment, rejectionsPage } from '../../html/hooks/rejections.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { View } from '../../kernel/http/view.ts'
import { cursorAt, readCursor, type LogQuery } from '../../services/hooks/events/filter.ts'
import { readList } from './events/list.ts'
import type { HooksRoutes } from './kit.ts'

/** `/log?rejected=1`: the rejected deliveries, newest first. */
export async function rejectionsView(
  { hooks: { db } }: HooksRoutes,
  query: LogQuery,
  context: Context,
): Promise<View> {
  const rows = await rejectionQueries.listRejections(db, {
    below: readCursor(query.cursor),
    provider: query.provider === '' ? null : query.provider,
    limit: query.limit + 1,
  })
  const rejections = rows.slice(0, query.limit)
  const last = rows.length > query.limit ? rejections.at(-1) : undefined
  const cursor = last === undefined ? null : cursorAt(last.id)
  const view = { rejections, ...(await readList(db, query, context, cursor)) }
  return { page: () => rejectionsPage(view), fragment: () => rejectionsFragment(view) }
}
