import { forbidden } from '../../../../kernel/fault.ts'
import { wantsFragment, type Context } from '../../../../kernel/http/context.ts'
import { readsContent, type ExportQuery } from '../../../../services/hooks/log/events/filter.ts'
import type { Caller } from '../../access.ts'

/**
 * Throws 403 for a search of payloads or headers that another site may have started. A token shows
 * that a program asks.
 */
export function refuseForeignSearch(query: ExportQuery, context: Context, caller?: Caller): void {
  if (!readsContent(query) || caller !== undefined || maySearch(context)) return
  throw forbidden(FOREIGN_SEARCH)
}

/**
 * Whether a search comes from this site, by a link that is followed, or from a program that says
 * so. With `Sec-Fetch-Site` the guard has refused others. Over plain http browsers do not send it:
 * then a page of this site in `Referer`, or the header of htmx, which no other site can set, must
 * show it.
 */
function maySearch(context: Context): boolean {
  const { headers } = context
  if (headers['sec-fetch-site'] !== undefined) return true
  if (wantsFragment(context)) return true
  const { referer = '', host = '' } = headers
  return URL.canParse(referer) && new URL(referer).host === host.toLowerCase()
}

/** The time that a search takes shows whether a text is in a payload. */
const FOREIGN_SEARCH =
  'A page of another site may not search here; search on the log page of this site. ' +
  'A program sends the header HX-Request: true.'
