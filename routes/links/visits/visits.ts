import { linkQueries } from '../../../db/links/names/links.ts'
import { primaryOwner } from '../../../html/links/names/links/links.ts'
import { gonePage, type GoneDetails } from '../../../html/links/visits/visits/gone.ts'
import { previewPage, type LinkDetails } from '../../../html/links/visits/visits/preview.ts'
import { unknownPage } from '../../../html/links/visits/visits/visits.ts'
import { Fault, forbidden, notFound, Unavailable } from '../../../kernel/fault.ts'
import { queryOf, type Context } from '../../../kernel/http/context.ts'
import { endOf } from '../../../services/links/names/links/lifecycle.ts'
import { exampleOf } from '../../../services/links/names/links/places.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { isForeignLoad } from '../../../kernel/net/guard.ts'
import { mayChange, mayRead } from '../../../services/links/names/links/links.ts'
import { RESERVED_SLUGS, nameMeant, slugsNear } from '../../../services/links/names/links/slug.ts'
import { hasEnded, type KnownLink } from '../../../services/links/visits/visits/target-cache.ts'
import {
  MAX_LOCATION,
  NO_FURTHER_PATH,
  targetOf,
  type FurtherPath,
} from '../../../services/links/names/links/target.ts'
import { emailOf, levelOf, visitorOf } from '../../../services/links/people/users/users.ts'
import {
  linkMeant,
  mayFollow,
  suggestionsFor,
} from '../../../services/links/visits/visits/visits.ts'
import { readVisitPath } from '../../../services/links/names/links/visit-path.ts'
import { faultPage, faultReply, LOCATION_TOO_LONG, NOT_FOUND } from '../faults.ts'
import { framed, shortLinks, type LinksRoutes } from '../kit.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

const NOINDEX = { 'x-robots-tag': 'noindex' }

const REDIRECT = { 'cache-control': 'no-store', ...NOINDEX }

/** Browsers and scanners ask for files, such as `favicon.ico`; nobody misses a link of that name. */
const FILE = /\.[a-z0-9]+$/i

const GONE = 'this link has ended'

const NAMELESS =
  'this link needs to know who you are: come through the address where you sign in, and open it ' +
  'yourself'

const OUTCOMES = ['redirected', 'previewed', 'forbidden', 'gone', 'unknown'] as const

/** A visit on its way; `ended` counts how visits end. */
interface Visit {
  app: LinksRoutes
  context: Context
  ended: Readonly<Record<(typeof OUTCOMES)[number], () => void>>
}

/**
 * `GET /{slug}[/more]`: 302 to where the link leads (decisions.md section 4). A plain visit of a
 * link in memory is answered at once; everything else is resolved step by step.
 */
export function resolverRoute(app: LinksRoutes): Route {
  const { targets, metrics } = app.links
  const visits = metrics.counter('gatehouse_links_visits', 'Visits answered, by how they ended.')
  const series = OUTCOMES.map((outcome) => [outcome, visits.series({ outcome })])
  const ended = Object.fromEntries(series) as Visit['ended']
  return {
    method: 'GET',
    path: '/:slug',
    access: 'open',
    kind: 'redirect',
    handle(context) {
      const visit = { app, context, ended }
      const known = targets.fresh(context.path, context.receivedAt.getTime())
      const reply = known && !known.isSecure && redirect(visit, known, NO_FURTHER_PATH)
      return reply || resolve(visit, known)
    },
  }
}

/** Whether no link can have this path: the root, the pages' prefix and the reserved slugs. */
export function isReservedPath(path: string) {
  // `OPTIONS *`, and addresses of another scheme.
  if (!path.startsWith('/')) return true
  const [first = ''] = path.replace(/^\/+/, '').split('/', 1)
  return first === '' || first === '-' || RESERVED_SLUGS.has(first)
}

async function resolve(visit: Visit, known: KnownLink | undefined) {
  const { app, context, ended } = visit
  if (isReservedPath(context.path)) return faultReply(app, NOT_FOUND, context, null)
  const { db, targets } = app.links
  const path = readVisitPath(context.path)
  const { actor, receivedAt: now } = context
  const level = levelOf(actor)
  let identified: Promise<Caller | undefined> | undefined
  const identify = () => (identified ??= visitorOf(db, actor, now, db.at(level)))
  const search = { db, targets, now: now.getTime(), level, visitor: identify }
  const link = known ?? (path && (await linkMeant(search, path.asked)))
  if (path && link && !path.previews && !link.isSecure) {
    const reply = redirect(visit, link, path.more)
    if (reply !== undefined) return reply
  }

  const isOver = link !== undefined && hasEnded(link, now.getTime())
  const asked = identify()
  // That a link has ended is known without the database.
  const visitor = await (isOver && !link.isSecure ? asked.catch(undefinedWhenBusy) : asked)
  if (path === undefined || link === undefined) {
    return replyUnknown(visit, path?.asked ?? '', visitor)
  }
  if (link.isSecure && !(await mayFollow(db, link, visitor))) {
    ended.forbidden()
    return replyForbidden(visit, link, visitor)
  }
  if (path.previews) {
    // Visitors who are not signed in must not learn that a link exists, unless it is public.
    if (visitor === undefined && link.visibility !== 'public') {
      return replyUnknown(visit, path.asked, visitor)
    }
    if (isOver) return replyGone(visit, link, visitor)
    ended.previewed()
    // With a query, the page shows an example that was typed; opening it was counted before.
    if (context.search === '' && isCounted(context)) {
      app.links.clicks.count(link.id, 'preview', context.receivedAt)
    }
    const sent = queryOf(context)
    const example = exampleOf(link, (name) => sent.get(name), visitor?.email)
    const details = await detailsOf(visit, link, visitor)
    const tellsUser = link.userPlace !== 'none'
    const page = previewPage({ link, tellsUser, details, example, short: shortLinks(app) })
    return htmlReply(framed(app, page, visitor), 200, NOINDEX)
  }
  const reply = redirect(visit, link, path.more)
  if (reply !== undefined) return reply
  if (hasEnded(link, now.getTime())) return replyGone(visit, link, visitor)
  if (link.userPlace === 'required' && nameOf(context) === undefined) {
    ended.forbidden()
    return refuseVisit(visit, forbidden(NAMELESS), visitor)
  }
  ended.unknown()
  const fault = notFound(`the link “${link.slug}” takes no further path`)
  return refuseVisit(visit, fault, visitor)
}

/**
 * The e-mail address that a link with `{user}` is told. A page of another site that loads the link
 * must not learn who looks at it: nobody has followed the link then.
 */
function nameOf({ actor, headers }: Context): string | undefined {
  return isForeignLoad(headers) ? undefined : emailOf(actor)
}

/**
 * The details that the preview of a link shows beside its address. Visitors who may not find the
 * link get no details. Visitors who are not signed in get the title of a public link, as in
 * suggestions.
 */
async function detailsOf(
  { app }: Visit,
  known: KnownLink,
  visitor?: Caller,
): Promise<LinkDetails> {
  const db = app.links.db.at(visitor === undefined ? 'strangers' : 'trusted')
  const asked = { id: known.id, users: visitor?.ids ?? [] }
  const link = await linkQueries.findLink(db, asked).catch(undefinedWhenBusy)
  if (link === undefined) return { kind: 'hidden' }
  if (visitor === undefined) return { kind: 'title', title: link.title }
  const mayOpen = mayRead(link, visitor)
  if (!mayOpen && link.visibility !== 'public') return { kind: 'hidden' }
  return { kind: 'all', link, mayOpen }
}

/** 410 for a link whose visits have ended. */
async function replyGone(visit: Visit, known: KnownLink, visitor?: Caller) {
  const { app, context, ended } = visit
  ended.gone()
  const details = await goneDetailsOf(visit, known, visitor)
  if (wantsJson(context)) {
    const owner = details && primaryOwner(details.link.owners)
    const message = owner === undefined ? GONE : `${GONE}; its owner is ${owner}`
    return refuseVisit(visit, new Fault(410, 'GONE', message), visitor)
  }
  const page = gonePage(known.slug, details, shortLinks(app))
  return htmlReply(framed(app, page, visitor), 410, NOINDEX)
}

/** Whose the link is and why it ended: only people who may read it learn that. */
async function goneDetailsOf(
  { app, context }: Visit,
  { id }: KnownLink,
  visitor: Caller | undefined,
): Promise<GoneDetails | undefined> {
  if (visitor === undefined) return undefined
  const asked = { id, users: visitor.ids }
  const link = await linkQueries.findLink(app.links.db, asked).catch(undefinedWhenBusy)
  if (link === undefined || !mayRead(link, visitor)) return undefined
  return { link, end: endOf(link, context.receivedAt), mayChange: mayChange(link, visitor) }
}

/**
 * The redirect of a visit, counted; undefined when visits of the link have ended, when it takes no
 * further path, or needs to know its visitor. Nothing is waited for between look and count: no
 * visit beyond the last comes between.
 */
function redirect(visit: Visit, link: KnownLink, more: FurtherPath) {
  const { app, context, ended } = visit
  if (hasEnded(link, context.receivedAt.getTime())) return undefined
  const user = link.userPlace === 'none' ? undefined : nameOf(context)
  const location = targetOf(link, more, context.search, user)
  if (location === undefined) return undefined
  if (location.length > MAX_LOCATION) {
    ended.unknown()
    return faultReply(app, LOCATION_TOO_LONG, context, null)
  }
  ended.redirected()
  if (isCounted(context)) {
    app.links.clicks.countVisit(link, context.headers, context.receivedAt)
  }
  return { status: 302, headers: { ...REDIRECT, location }, body: null }
}

/** HEAD is never counted. */
function isCounted({ method }: Context) {
  return method === 'GET'
}

/**
 * 404 with what the visitor may have meant, and a way to create the link. Programs that ask for
 * JSON get it.
 */
async function replyUnknown(visit: Visit, asked: string, visitor?: Caller) {
  const { app, context, ended } = visit
  ended.unknown()
  const slug = nameMeant(asked)
  const isMissed = context.method === 'GET' && !FILE.test(asked)
  if (slug !== undefined && isMissed) app.links.missing.count(slug)
  if (wantsJson(context)) return refuseVisit(visit, notFound('link not found'), visitor)
  const db = app.links.db.at('extras')
  const found = await suggestionsFor(db, asked, visitor, context.receivedAt).catch(
    undefinedWhenBusy,
  )
  const suggestions = found ?? []
  const creates = slug ?? slugsNear(asked)[0]
  const page = unknownPage(visitor, { asked, creates, suggestions })
  return htmlReply(framed(app, page, visitor), 404, NOINDEX)
}

/** If the database is too busy, the page is shown without suggestions and details. */
function undefinedWhenBusy(error: unknown): undefined {
  if (error instanceof Unavailable) return undefined
  throw error
}

/**
 * 403 for a secure link that the visitor may not follow. It says neither where the link leads nor
 * whose it is: only people who may read a link see that.
 */
function replyForbidden(visit: Visit, { slug }: KnownLink, visitor?: Caller) {
  const message =
    visitor === undefined
      ? 'this link is only for people who are signed in and may follow it: ' +
        'come through the address where you sign in'
      : `the link “${slug}” is secure: only its owners, people it is shared with and admins may ` +
        'follow it. To get access, ask the person who gave you the link, or an administrator, ' +
        `to share it with ${visitor.email}`
  return refuseVisit(visit, forbidden(message), visitor)
}

function refuseVisit({ app, context }: Visit, { status, code, message }: Fault, visitor?: Caller) {
  const fault = new Fault(status, code, message, { headers: NOINDEX })
  return wantsJson(context)
    ? faultReply(app, fault, context, visitor)
    : faultPage(app, fault, visitor)
}

function wantsJson({ headers }: Context) {
  return (headers.accept ?? '').includes('application/json')
}
