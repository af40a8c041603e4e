import type { ClickKind, User } from '../../db/links/rows.ts'
import { mayVisit } from '../../db/links/visits.ts'
import type { Context } from '../../kernel/context.ts'
import type { Reply } from '../../kernel/reply.ts'
import type { Route } from '../../kernel/router.ts'
import { clickKind } from '../../services/links/click-kind.ts'
import { isSlug, slugsMeant } from '../../services/links/slug.ts'
import { targetOf } from '../../services/links/target.ts'
import type { KnownLink } from '../../services/links/target-cache.ts'
import { visitorOf } from '../../services/links/visitor.ts'
import type { LinksRoutes } from './options.ts'
import { forbiddenPage, previewPage, unknownPage } from './visit-pages.ts'

const REDIRECT = { 'cache-control': 'no-store', 'x-robots-tag': 'noindex' }

/** What a visit's path asks for: its segments, decoded, the first without a `+` at its end. */
interface Visit {
  readonly asked: string
  readonly more: readonly string[]
  readonly previews: boolean
}

/**
 * `GET /{slug}[/more]`: 302 to where the link leads (decisions.md section 4). A link in memory that
 * takes the visit as it is answers at once; everything else goes the long way.
 */
export function resolverRoute(options: LinksRoutes): Route {
  const { targets } = options.links
  return {
    method: 'GET',
    path: '/:slug',
    access: 'open',
    handle(context) {
      const slug = context.path.slice(1)
      const known = targets.fresh(slug, context.receivedAt.getTime())
      if (known === undefined || known.visibility === 'secure') return resolve(options, context)
      return redirect(options, context, known, []) ?? resolve(options, context)
    },
  }
}

async function resolve(options: LinksRoutes, context: Context): Promise<Reply> {
  const { links, identify } = options
  const visit = readVisit(context.path)
  const link = visit && (await find(options, visit.asked, context))
  const needsUser = visit === undefined || link === undefined || visit.previews || isSecure(link)
  const visitor = needsUser
    ? await visitorOf(links.db, identify(context), context.receivedAt)
    : undefined
  if (visit === undefined || link === undefined) {
    return unknownPage(options, context, visit?.asked ?? '', visitor)
  }
  if (isSecure(link)) {
    if (!(await mayRead(options, link, visitor))) return forbiddenPage(context, visitor)
  }
  if (visit.previews) {
    // A stranger to this house sees what is public, and learns of nothing else.
    if (visitor === undefined && link.visibility !== 'public') {
      return unknownPage(options, context, visit.asked, visitor)
    }
    count(options, context, link, 'preview')
    return previewPage(link, visitor, await mayRead(options, link, visitor))
  }
  return (
    redirect(options, context, link, visit.more) ??
    unknownPage(options, context, visit.asked, visitor)
  )
}

/** Whether a visitor is an owner or a recipient of a link, or an admin. */
async function mayRead(
  { links }: LinksRoutes,
  link: KnownLink,
  visitor: User | undefined,
): Promise<boolean> {
  if (visitor === undefined) return false
  return visitor.role === 'admin' || mayVisit(links.db, link.id, visitor.id)
}

/** The redirect of a visit, counted; undefined when the link takes no further path. */
function redirect(
  options: LinksRoutes,
  context: Context,
  link: KnownLink,
  more: readonly string[],
): Reply | undefined {
  const location = targetOf(link, more, context.search)
  if (location === undefined) return undefined
  count(options, context, link, clickKind(context.headers))
  return { status: 302, headers: { ...REDIRECT, location }, body: null }
}

/** HEAD is never counted. */
function count(
  { links }: LinksRoutes,
  { method, receivedAt }: Context,
  { id }: KnownLink,
  kind: ClickKind,
): void {
  if (method === 'GET') links.clicks.count(id, kind, receivedAt)
}

async function find(
  { links: { targets } }: LinksRoutes,
  asked: string,
  { receivedAt }: Context,
): Promise<KnownLink | undefined> {
  const now = receivedAt.getTime()
  for (const slug of slugsMeant(asked)) {
    const link = targets.fresh(slug, now) ?? (await targets.read(slug, now))
    if (link !== undefined) return link
  }
  return undefined
}

function isSecure({ visibility }: KnownLink): boolean {
  return visibility === 'secure'
}

/** Undefined for a path that no link can have. A slash at the end adds no segment. */
function readVisit(path: string): Visit | undefined {
  const segments = path.slice(1).replace(/\/$/, '').split('/')
  const decoded: string[] = []
  for (const segment of segments) {
    const text = decodeSegment(segment)
    if (text === undefined) return undefined
    decoded.push(text)
  }
  const [first = '', ...more] = decoded
  const previews =
    more.length === 0 && first.endsWith('+') && isSlug(first.slice(0, -1).toLowerCase())
  return { asked: previews ? first.slice(0, -1) : first, more, previews }
}

function decodeSegment(segment: string): string | undefined {
  try {
    const text = decodeURIComponent(segment)
    return text.includes('\0') ? undefined : text
  } catch {
    // URIError: the percent-encoding is broken.
    return undefined
  }
}
