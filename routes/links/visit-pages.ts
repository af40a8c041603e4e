import type { Suggestion } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { previewPage as previewHtml, unknownPage as unknownHtml } from '../../html/links/visits.ts'
import type { Context } from '../../kernel/http/context.ts'
import { Unavailable, type FaultValue } from '../../kernel/fault.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import { slugsMeant } from '../../services/links/slug.ts'
import { suggestionsFor } from '../../services/links/visits.ts'
import type { KnownLink } from '../../services/links/target-cache.ts'
import { faultPage, faultReply, NOT_FOUND } from './faults.ts'
import type { LinksRoutes } from './options.ts'

const NOINDEX = { 'x-robots-tag': 'noindex' }

/** 404: what the visitor may have meant, and a way to make the link. Programs that ask for JSON get it. */
export async function unknownPage(
  { links }: LinksRoutes,
  context: Context,
  asked: string,
  visitor: User | undefined,
): Promise<Reply> {
  const fault = { ...NOT_FOUND, detail: 'link not found', headers: NOINDEX }
  if (wantsJson(context)) return faultReply(fault, context)
  const suggestions = await suggestionsFor(links.db.at('extras'), asked, visitor).catch(none)
  const [creates] = slugsMeant(asked)
  return htmlReply(unknownHtml(visitor, { asked, creates, suggestions }), 404, NOINDEX)
}

/** While the database has no time for them, the page is given without. */
function none(error: unknown): readonly Suggestion[] {
  if (error instanceof Unavailable) return []
  throw error
}

/** 404: the link is there, and leads to one place only. */
export function noPathPage(context: Context, slug: string, visitor: User | undefined): Reply {
  const detail = `the link “${slug}” takes no further path`
  const fault: FaultValue = { ...NOT_FOUND, detail, headers: NOINDEX }
  return wantsJson(context) ? faultReply(fault, context) : faultPage(fault, visitor)
}

/** 403: a secure link that the visitor may not follow. Where it leads is not said. */
export function forbiddenPage(context: Context, visitor: User | undefined): Reply {
  const detail =
    visitor === undefined
      ? 'this link is only for people who are signed in and may follow it'
      : 'this link is not shared with you; ask one of its owners'
  const fault: FaultValue = { status: 403, code: 'FORBIDDEN', detail, headers: NOINDEX }
  return wantsJson(context) ? faultReply(fault, context) : faultPage(fault, visitor)
}

/** Where a link leads (`/slug+`). */
export function previewPage(link: KnownLink, visitor: User | undefined, mayRead: boolean): Reply {
  return htmlReply(previewHtml(visitor, link, mayRead), 200, NOINDEX)
}

function wantsJson({ headers }: Context): boolean {
  return (headers.accept ?? '').includes('application/json')
}
