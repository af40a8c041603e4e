import { forbidden } from '../../../../kernel/fault.ts'
import { headerOf, wantsFragment, type Context } from '../../../../kernel/http/context.ts'
import { readsContent, type ExportQuery } from '../../../../services/hooks/log/events/filter.ts'
import type { Caller } from '../../access.ts'

/**
 * Throws 403 for a search of payloads or headers that another site may have started. No page of
 * another site has a token.
 */
export function refuseForeignSearch(query: ExportQuery, context: Context, caller?: Caller): void {
  if (!readsContent(query) || caller !== undefined || maySearch(context)) return
  throw forbidden(FOREIGN_SEARCH)
}

/**
 * Whether a search comes from this site, by a link that is followed, or from a program. With
 * `Sec-Fetch-Site` the guard has refused others. Over plain http browsers do not send it: then a
 * page of this site in `Referer`, or the header of htmx, which no other site can set, must show it.
 */
function maySearch(context: Context): boolean {
  const { headers } = context
  if (headers['sec-fetch-site'] !== undefined) return true
  if (wantsFragment(context)) return true
  const { referer, origin, host = '' } = headers
  if (referer === undefined) return origin === undefined && !isBrowser(context)
  return URL.parse(referer)?.host === host.toLowerCase()
}

/**
 * Whether a browser asks. A page can leave out `Referer` and `Origin`, but not these two: browsers
 * have a `User-Agent` that begins with `Mozilla/`, and send `Accept-Language` also where an
 * application has changed that. Node's own fetch sends `Accept-Language: *`.
 */
function isBrowser(context: Context): boolean {
  const languages = headerOf(context, 'accept-language') ?? '*'
  return languages !== '*' || headerOf(context, 'user-agent')?.startsWith('Mozilla/') === true
}

/** The time that a search takes shows whether a text is in a payload. */
const FOREIGN_SEARCH =
  'A page of another site may not search here; search on the log page of this site.'
