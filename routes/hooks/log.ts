import { streamBounds } from '../../db/hooks/events.ts'
import { providerQueries } from '../../db/hooks/providers.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { readsPayloads } from '../../db/hooks/search.ts'
import { logFragment, logPage, rejectionsFragment, rejectionsPage } from '../../html/hooks/log.ts'
import { queryOf, wantsFragment, type Context } from '../../kernel/http/context.ts'
import { unavailable, type FaultValue } from '../../kernel/fault.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { findEvents, TOO_MANY_SEARCHES } from '../../services/hooks/find-events.ts'
import {
  eventCursor,
  readLogQuery,
  readRejectionCursor,
  rejectionCursor,
  type LogQuery,
} from '../../services/hooks/log-filter.ts'
import { pageOrFragment } from '../page-answers.ts'
import { badRequest, hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /log` (hooks.md section 4): events, or with `?rejected=1` the refused deliveries. */
export function logRoute({ hooks }: HooksRoutes): Route {
  async function handle(context: Context): Promise<Reply> {
    const query = queryOf(context)
    const wanted = readLogQuery(query)
    if (typeof wanted === 'string') return hooksFault(badRequest(wanted), context)
    if (readsPayloads(wanted.payload) && !maySearch(context)) {
      return hooksFault(FOREIGN_SEARCH, context)
    }
    // What fills the filter's form: a fragment has none.
    const senders = wantsFragment(context) ? [] : await providerQueries.listProviders(hooks.db, {})
    const providers = senders.map((sender) => sender.name)
    return query.get('rejected') === '1'
      ? rejected(context, query, wanted, providers)
      : events(context, query, wanted, providers)
  }

  async function events(
    context: Context,
    query: URLSearchParams,
    wanted: LogQuery,
    providers: readonly string[],
  ): Promise<Reply> {
    // Before the events: what comes in between is told by the stream, which a fragment has none of.
    const position = wantsFragment(context) ? 0 : (await streamBounds(hooks.db, 0)).newest
    const page = await findEvents(
      hooks.db,
      hooks.clock,
      wanted.filter,
      wanted.payload,
      wanted.limit,
      context,
    )
    if (page === 'late') return hooksFault(unavailable(TOO_MANY_SEARCHES), context)
    const view = {
      filter: wanted,
      providers,
      events: page.events,
      below: wanted.filter.before !== null,
      searchedTo: page.searchedTo,
      next: page.next === null ? null : next(query, eventCursor(page.next)),
    }
    return pageOrFragment(
      context,
      () => logPage(view, position),
      () => logFragment(view),
    )
  }

  async function rejected(
    context: Context,
    query: URLSearchParams,
    wanted: LogQuery,
    providers: readonly string[],
  ): Promise<Reply> {
    const below = readRejectionCursor(query.get('cursor'))
    if (below === undefined) return hooksFault(badRequest('cursor is none of this log.'), context)
    const rows = await rejectionQueries.listRejections(hooks.db, {
      below: below ?? Number.MAX_SAFE_INTEGER,
      provider: wanted.filter.provider,
      limit: wanted.limit + 1,
    })
    const page = rows.slice(0, wanted.limit)
    const last = page.at(-1)
    const more = rows.length > page.length && last !== undefined
    const view = {
      filter: wanted,
      providers,
      rejections: page,
      below: below !== null,
      next: more ? next(query, rejectionCursor(last)) : null,
    }
    return pageOrFragment(
      context,
      () => rejectionsPage(view),
      () => rejectionsFragment(view),
    )
  }

  return { method: 'GET', path: '/log', access: 'guarded', handle }
}

/**
 * Whether a search comes from this site, by a link that is followed, or from a program that says so. Over
 * plain http browsers send no `Sec-Fetch-Site`: then a page of this site in `Referer`, or the header of
 * htmx, which no other site can set, must show it.
 */
function maySearch(context: Context): boolean {
  const { headers } = context
  if (headers['sec-fetch-site'] !== undefined) return !isForeignLoad(headers)
  if (wantsFragment(context)) return true
  const { referer = '', host = '' } = headers
  return URL.canParse(referer) && new URL(referer).host === host.toLowerCase()
}

/** The time that a search takes tells whether a text is in a payload. */
const FOREIGN_SEARCH: FaultValue = {
  status: 403,
  code: 'FORBIDDEN',
  detail:
    'A page of another site may not search here; search on the log page of this site. A program sends the header HX-Request: true.',
}

/** The same query, from below a position. */
function next(query: URLSearchParams, cursor: string): string {
  const following = new URLSearchParams(query)
  following.set('cursor', cursor)
  return `/log?${following.toString()}`
}
