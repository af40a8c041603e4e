import type { ClickKind } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { mayVisit } from '../../db/links/visits.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { clickKind } from './click-kind.ts'
import { linkMeant, readVisitPath } from '../../services/links/visits.ts'
import { RESERVED_SLUGS } from '../../services/links/slug.ts'
import {
  LOCATION_LONGEST,
  NO_FURTHER_PATH,
  targetOf,
  type FurtherPath,
} from '../../services/links/target.ts'
import type { KnownLink } from '../../services/links/target-cache.ts'
import { levelOf, visitorOf } from '../../services/links/users.ts'
import { faultReply, LOCATION_TOO_LONG, NOT_FOUND } from './faults.ts'
import type { LinksRoutes } from './options.ts'
import { forbiddenPage, noPathPage, previewPage, unknownPage } from './visit-pages.ts'

const REDIRECT = { 'cache-control': 'no-store', 'x-robots-tag': 'noindex' }

/** What the resolver is made from: it counts how visits end. */
interface Resolver extends LinksRoutes {
  readonly ended: Readonly<Record<'redirected' | 'previewed' | 'forbidden' | 'unknown', () => void>>
}

/**
 * `GET /{slug}[/more]`: 302 to where the link leads (decisions.md section 4). A link in memory that
 * takes the visit as it is answers at once; everything else goes the long way.
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

/** The path of no link: the root, the pages' prefix and the reserved slugs. */
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
    ended.unknown()
    return unknownPage(resolver, context, visit?.asked ?? '', visitor)
  }
  if (link.isSecure && !(await mayRead(resolver, link, visitor))) {
    ended.forbidden()
    return forbiddenPage(context, visitor)
  }
  if (visit.previews) {
    // A stranger to this house sees what is public, and learns of nothing else.
    if (visitor === undefined && link.visibility !== 'public') {
      ended.unknown()
      return unknownPage(resolver, context, visit.asked, visitor)
    }
    ended.previewed()
    count(resolver, context, link, 'preview')
    return previewPage(link, visitor, await mayRead(resolver, link, visitor))
  }
  const reply = redirect(resolver, context, link, visit.more)
  if (reply !== undefined) return reply
  ended.unknown()
  return noPathPage(context, link.slug, visitor)
}

/** Whether a visitor is an owner or a recipient of a link, or an admin. */
async function mayRead(
  { links }: Resolver,
  link: KnownLink,
  visitor: User | undefined,
): Promise<boolean> {
  if (visitor === undefined) return false
  return visitor.role === 'admin' || mayVisit(links.db, link.id, visitor.id)
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
  if (location.length > LOCATION_LONGEST) {
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
