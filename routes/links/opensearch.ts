import type { User } from '../../db/links/users.ts'
import { searchDescription, searchPage } from '../../html/links/visits/visits.ts'
import { queryOf, type Context } from '../../kernel/http/context.ts'
import { bytesReply, htmlReply, jsonReply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import { searchLinks } from '../../services/links/lists/lists.ts'
import { isSlug } from '../../services/links/links/slug.ts'
import { MAX_LOCATION } from '../../services/links/links/target.ts'
import { visitorOf } from '../../services/links/users/users.ts'
import {
  encodePath,
  readSearchTerms,
  suggestionsFor,
  termsOfLink,
} from '../../services/links/visits/visits.ts'
import { faultReply, framed, shortLinks, LOCATION_TOO_LONG, type LinksRoutes } from './kit.ts'

/** The most links that a search page lists. */
const MAX_FOUND = 10
/** Longer names match nothing. */
const MAX_NAME_LENGTH = 200

/**
 * The search of browsers. Visitors need not be signed in: links work without, and strangers see
 * only public ones.
 */
export function searchRoutes(app: LinksRoutes): readonly Route[] {
  const handlers = { '/-/opensearch.xml': description, '/-/go': go, '/-/suggest': suggest }
  return Object.entries(handlers).map(([path, handler]) => ({
    method: 'GET',
    path,
    access: 'guarded',
    handle: (context) => handler(app, context),
  }))
}

function description(app: LinksRoutes) {
  const text = searchDescription(shortLinks(app))
  const type = 'application/opensearchdescription+xml'
  return bytesReply(text, type, { 'cache-control': 'no-cache' })
}

/** `/-/go?q=`: redirects to the link with this name, or lists similar ones. */
async function go(app: LinksRoutes, context: Context) {
  const { db, targets } = app.links
  const short = shortLinks(app)
  const typed = readSearchTerms(queryOf(context).get('q') ?? '', short.base)
  if (typed.name === '') return redirect('/-/')
  const now = context.receivedAt.getTime()
  const { terms, isLink } = await termsOfLink(targets, typed, short, now)
  if (isLink) {
    const location = `/${encodePath(terms.name + terms.rest)}`
    const fits = location.length <= MAX_LOCATION
    return fits ? redirect(location) : faultReply(app, LOCATION_TOO_LONG, context)
  }
  const name = terms.name.slice(0, MAX_NAME_LENGTH)
  const visitor = await visitorAt(app, context)
  const view = {
    name,
    rest: encodePath(terms.rest),
    canCreate: isSlug(name.toLowerCase()),
    suggestions: await suggestionsFor(db, name, visitor),
    found: visitor === undefined ? null : await linksLike(app, visitor, name),
  }
  return htmlReply(framed(app, searchPage(visitor, view), visitor))
}

async function linksLike(app: LinksRoutes, visitor: User, name: string) {
  const { db, clock } = app.links
  const filter = { q: name, tag: '', visibility: '', role: '', sort: '' } as const
  const search = { filter, visitor, among: 'all' } as const
  const tools = { db, clock, short: shortLinks(app) }
  return (await searchLinks(tools, search, undefined, MAX_FOUND)).links
}

/** `/-/suggest?q=`: suggestions in the form of OpenSearch. The path after the name is kept. */
async function suggest(app: LinksRoutes, context: Context) {
  const text = queryOf(context).get('q') ?? ''
  const { name, rest } = suggestedTerms(app, text)
  const visitor = await visitorAt(app, context)
  const shortName = name.slice(0, MAX_NAME_LENGTH)
  const suggestions = await suggestionsFor(app.links.db, shortName, visitor)
  const completions = suggestions.map(({ slug }) => slug + rest)
  const body = [
    text,
    completions,
    suggestions.map(({ title }) => title),
    completions.map((completion) => `${app.baseUrl()}/${encodePath(completion)}`),
  ]
  return jsonReply(body, 200, {}, 'application/x-suggestions+json')
}

/** What is completed: in `go/do`, what follows the keyword. */
function suggestedTerms(app: LinksRoutes, text: string) {
  const base = app.baseUrl()
  const terms = readSearchTerms(text, base)
  const isPrefix = terms.name.toLowerCase() === app.shortKeyword() && terms.rest !== ''
  return isPrefix ? readSearchTerms(terms.rest, base) : terms
}

/**
 * The user at the browser. A page of another site that loads this address unseen counts as
 * anonymous: from the time of the reply it could learn what the user may find.
 */
async function visitorAt(app: LinksRoutes, context: Context) {
  if (isForeignLoad(context.headers)) return undefined
  return visitorOf(app.links.db, context.actor, context.receivedAt)
}

function redirect(location: string) {
  return { status: 302, headers: { location, 'cache-control': 'no-store' }, body: null }
}
