import type { Database } from '../../../../db/client.ts'
import { providerQueries } from '../../../../db/hooks/receive/providers.ts'
import type { ListView } from '../../../../html/hooks/log/events/list.ts'
import { queryOf, wantsFragment, type Context } from '../../../../kernel/http/context.ts'
import type { LogQuery } from '../../../../services/hooks/log/events/filter.ts'
import { typedOf } from '../../../../services/hooks/log/events/log-address.ts'

/**
 * What the log and the list of rejections show beside their rows; only whole pages have the
 * choices of the filter. The next page begins at `cursor`.
 */
export async function readList(
  db: Database,
  filter: LogQuery,
  context: Context,
  cursor: string | null,
): Promise<ListView> {
  const providers = wantsFragment(context) ? [] : await providerQueries.listProviders(db, {})
  return {
    filter,
    typed: typedOf(filter),
    providers: providers.map(({ name }) => name),
    below: filter.cursor !== '',
    next: cursor === null ? null : nextPage(context, cursor),
  }
}

/** The same query, from below a position. */
function nextPage(context: Context, cursor: string): string {
  const query = new URLSearchParams(queryOf(context))
  query.delete('above')
  query.set('cursor', cursor)
  return `/log?${query}`
}
