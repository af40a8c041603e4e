import type { IncomingHttpHeaders } from 'node:http'
import type { User } from '../../db/links/users.ts'
import { visitQueries, type ClickKind } from '../../db/links/visits.ts'
import { previewPage, unknownPage } from '../../html/links/visits.ts'
import { Fault, forbidden, notFound, Unavailable } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { RESERVED_SLUGS, slugsMeant } from '../../services/links/slug.ts'
import type { KnownLink } from '../../services/links/target-cache.ts'
import {
  MAX_LOCATION,
  NO_FURTHER_PATH,
  targetOf,
  type FurtherPath,
} from '../../services/links/target.ts'
import { levelOf, visitorOf } from '../../services/links/users.ts'
import { linkMeant, readVisitPath, suggestionsFor } from '../../services/links/visits.ts'
import {
  faultPage,
  faultReply,
  LOCATION_TOO_LONG,
  NOT_FOUND,
  type LinksRoutes,
} from './endpoint.ts'

const NOINDEX = { 'x-robots-tag': 'noindex' }

/** Programs that say so; among them those that fetch a link to show what is behind it. */
const BOT =
  /(?<!cu)bot\b|crawl|spider|slurp|preview|externalhit|linkexpanding|embed|fetch|curl|wget|python|ruby|php|^node|undici|go-http|httpclient|java\/|okhttp|axios|whatsapp|headless|monitor|uptime|scan/i

const REDIRECT = { 'cache-control': 'no-store', ...NOINDEX }

/** What the resolver is made from; `ended` counts how visits end. */
interface Resolver extends LinksRoutes {
  readonly ended: Readonly<Record<'redirected' | 'previewed' | 'forbidden' | 'unknown', () => void>>
}

/**
 * `GET /{slug}[/more]`: 302 to where the link leads (decisions.md section 4). A plain visit of a
 * link in memory is answered at once; everything else is resolved step by step.
 */
export function resolverRoute(options: LinksRoutes): Route {
  const { targets, metrics } = options.links
  const visits = metrics.counter('gatehouse_links_visits', 'Visits answered, by how they ended.')
  const ended = {
    redirected: visits.series({ outcome: 'redirected' }),
    previewed: visits.series({ outcome: 'previewed' }),
    forbidden: visits.series({ outcome: 'forbidden' }),
    unknown: visits.series({ outcome: 'unknown' }),
  }
  const resolver: Resolver = { ...options, ended }
  return {
    method: 'GET',
    path: '/:slug',
    access: 'open',
    handle(context) {
      const known = targets.fresh(context.path, context.receivedAt.getTime())
      const reply = known && !known.isSecure && redirect(resolver, context, known, NO_FURTHER_PATH)
      return reply || resolve(resolver, context, known)
    },
  }
}

/** Whether no link can have this path: the root, the pages' prefix and the reserved slugs. */
export function isReservedPath(path: string): boolean {
  const [, first = ''] = path.split('/', 2)
  return first === '' || first === '-' || RESERVED_SLUGS.has(first)
}

async function resolve(
  resolver: Resolver,
  context: Context,
  known: KnownLink | undefined,
): Promise<Reply> {
  if (isReservedPath(context.path)) return faultReply(NOT_FOUND, context)
  const { links, identify, ended } = resolver
  const visit = readVisitPath(context.path)
  const identity = identify(context)
  const level = levelOf(identity)
  const now = context.receivedAt
  const link =
    known ?? (visit && (await linkMeant(links.targets, visit.asked, now.getTime(), level)))
  if (visit && link && !visit.previews && !link.isSecure) {
    const reply = redirect(resolver, context, link, visit.more)
    if (reply !== undefined) return reply
  }

  const visitor = await visitorOf(links.db, identity, now, links.db.at(level))
  if (visit === undefined || link === undefined) {
    return replyUnknown(resolver, context, visit?.asked ?? '', visitor)
  }
  if (link.isSecure && !(await mayRead(resolver, link, visitor))) {
    ended.forbidden()
    return replyForbidden(context, visitor)
  }
  if (visit.previews) {
    // To a stranger, a link that is not public looks like none.
    if (visitor === undefined && link.visibility !== 'public') {
      return replyUnknown(resolver, context, visit.asked, visitor)
    }
    ended.previewed()
    count(resolver, context, link, 'preview')
    const page = previewPage(visitor, link, await mayRead(resolver, link, visitor))
    return htmlReply(page, 200, NOINDEX)
  }
  const reply = redirect(resolver, context, link, visit.more)
  if (reply !== undefined) return reply
  ended.unknown()
  const fault = notFound(`the link “${link.slug}” takes no further path`)
  return refuseVisit(fault, context, visitor)
}

/** Whether a visitor is an owner or a recipient of a link, or an admin. */
async function mayRead(
  { links }: Resolver,
  link: KnownLink,
  visitor: User | undefined,
): Promise<boolean> {
  if (visitor === undefined) return false
  if (visitor.role === 'admin') return true
  return (await visitQueries.mayVisit(links.db, { link: link.id, user: visitor.id })).may
}

/** The redirect of a visit, counted; undefined when the link takes no further path. */
function redirect(
  resolver: Resolver,
  context: Context,
  link: KnownLink,
  more: FurtherPath,
): Reply | undefined {
  const location = targetOf(link, more, context.search)
  if (location === undefined) return undefined
  if (location.length > MAX_LOCATION) {
    resolver.ended.unknown()
    return faultReply(LOCATION_TOO_LONG, context)
  }
  resolver.ended.redirected()
  count(resolver, context, link, clickKind(context.headers))
  return { status: 302, headers: { ...REDIRECT, location }, body: null }
}

/** HEAD is never counted. */
function count(
  { links }: Resolver,
  { method, receivedAt }: Context,
  { id }: KnownLink,
  kind: ClickKind,
): void {
  if (method === 'GET') links.clicks.count(id, kind, receivedAt)
}

/**
 * 404 with what the visitor may have meant, and a way to create the link. Programs that ask for
 * JSON get it.
 */
async function replyUnknown(
  { links, ended }: Resolver,
  context: Context,
  asked: string,
  visitor: User | undefined,
): Promise<Reply> {
  ended.unknown()
  if (wantsJson(context)) return refuseVisit(notFound('link not found'), context, visitor)
  // When the database has no time for suggestions, the page has none.
  const suggestions = await suggestionsFor(links.db.at('extras'), asked, visitor).catch(
    (error: unknown) => {
      if (error instanceof Unavailable) return []
      throw error
    },
  )
  const [creates] = slugsMeant(asked)
  return htmlReply(unknownPage(visitor, { asked, creates, suggestions }), 404, NOINDEX)
}

/** 403 for a secure link that the visitor may not follow. It does not say where the link leads. */
function replyForbidden(context: Context, visitor: User | undefined): Reply {
  const message =
    visitor === undefined
      ? 'this link is only for people who are signed in and may follow it'
      : 'this link is not shared with you; ask one of its owners'
  return refuseVisit(forbidden(message), context, visitor)
}

function refuseVisit(
  { status, code, message }: Fault,
  context: Context,
  visitor: User | undefined,
): Reply {
  const fault = new Fault(status, code, message, { headers: NOINDEX })
  return wantsJson(context) ? faultReply(fault, context) : faultPage(fault, visitor)
}

function wantsJson({ headers }: Context): boolean {
  return (headers.accept ?? '').includes('application/json')
}

/**
 * Whether a person follows a link, or a program. A browser that loads ahead counts as a program.
 */
function clickKind(headers: IncomingHttpHeaders): 'human' | 'bot' {
  const agent = headers['user-agent']
  if (agent === undefined || agent === '' || BOT.test(agent)) return 'bot'
  const purpose = headers['sec-purpose'] ?? headers['purpose']
  return purpose === undefined ? 'human' : 'bot'
}
