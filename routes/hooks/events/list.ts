import type { Database } from '../../../db/client.ts'
import { providerQueries } from '../../../db/hooks/providers.ts'
import type { LogTyped } from '../../../html/hooks/events/filter.ts'
import type { ListView } from '../../../html/hooks/events/list.ts'
import { queryOf, wantsFragment, type Context } from '../../../kernel/http/context.ts'
import { tokensOf } from '../../../services/hooks/events/tokens.ts'
import type { LogQuery } from '../../../services/hooks/events/filter.ts'

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

/** What the form shows: the provider and a time of the menu are not in its text. */
function typedOf(filter: LogQuery): LogTyped {
  const { when, from, to, zone } = filter
  const isChosen = when !== ''
  const bounds = isChosen ? { since: '', until: '' } : {}
  return { q: tokensOf({ ...filter, provider: '', ...bounds }), when, from, to, zone }
}

/** The same query, from below a position. */
function nextPage(context: Context, cursor: string): string {
  const query = new URLSearchParams(queryOf(context))
  query.delete('above')
  query.set('cursor', cursor)
  return `/log?${query}`
}
