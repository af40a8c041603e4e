import * as Type from '../../kernel/schema.ts'
import { searchDescription, searchPage } from '../../html/links/visits/visits/visits.ts'
import type { Call } from '../../kernel/http/declaration.ts'
import { bytesReply, htmlReply, jsonReply } from '../../kernel/http/reply.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import { withDefault } from '../../kernel/validate.ts'
import { NO_FILTER } from '../../services/links/names/lists/filter.ts'
import { searchLinks } from '../../services/links/names/lists/lists.ts'
import { endOf } from '../../services/links/names/links/lifecycle.ts'
import { isSlug } from '../../services/links/names/links/slug.ts'
import { MAX_LOCATION } from '../../services/links/names/links/target.ts'
import { visitorOf } from '../../services/links/people/users/users.ts'
import {
  encodeRest,
  readSearchTerms,
  suggestionsFor,
  termsOfLink,
} from '../../services/links/visits/visits/visits.ts'
import { guest } from './access.ts'
import { LOCATION_TOO_LONG } from './faults.ts'
import { framed, raw, shortLinks, type LinksRoutes } from './kit.ts'
import type { Caller } from '../../services/links/people/users/groups.ts'

/** The most links that a search page lists. */
const MAX_FOUND = 10
/** Longer names match nothing. */
const MAX_NAME_LENGTH = 200

const SearchQuery = Type.Object({ q: withDefault(Type.String(), '') })

type SearchCall = Call<LinksRoutes, null, unknown, { q: string }>

/**
 * The search of browsers. Visitors need not be signed in: links work without, and strangers see
 * only public ones.
 */
export const searchEndpoints = [
  raw({
    path: '/-/opensearch.xml',
    access: guest,
    answer({ app }) {
      const text = searchDescription(shortLinks(app))
      const type = 'application/opensearchdescription+xml'
      return bytesReply(text, type, { 'cache-control': 'no-cache' })
    },
  }),

  raw({ path: '/-/go', access: guest, query: SearchQuery, answer: go }),

  raw({ path: '/-/suggest', access: guest, query: SearchQuery, answer: suggest }),
]

/** `/-/go?q=`: redirects to the link with this name, or lists similar ones. */
async function go({ app, query, now, context }: SearchCall) {
  const { db, targets } = app.links
  const short = shortLinks(app)
  const meant = readSearchTerms(query.q, short)
  const visitor = () => userAt(app, context)
  const search = { db, targets, now: now.getTime(), level: 'trusted', visitor } as const
  const terms = await termsOfLink(search, meant)
  if (terms !== undefined) {
    const location = `/${encodeURIComponent(terms.name)}${encodeRest(terms.rest)}`
    if (location.length > MAX_LOCATION) throw LOCATION_TOO_LONG
    return redirect(location)
  }
  const last = meant.at(-1)
  if (last === undefined || last.name === '') return redirect('/-/')
  const name = last.name.slice(0, MAX_NAME_LENGTH)
  const user = await userAt(app, context)
  const view = {
    name,
    rest: encodeRest(last.rest),
    canCreate: isSlug(name.toLowerCase()),
    suggestions: await suggestionsFor(db, name, user, now),
    found: user === undefined ? null : await linksLike(app, user, name, now),
  }
  return htmlReply(framed(app, searchPage(user, view), user))
}

async function linksLike(app: LinksRoutes, user: Caller, name: string, now: Date) {
  const { db } = app.links
  const filter = { ...NO_FILTER, q: name }
  const search = { filter, visitor: user, among: 'all' } as const
  const tools = { db, short: shortLinks(app), now }
  const { links } = await searchLinks(tools, search, undefined, MAX_FOUND)
  return links.filter((link) => endOf(link, now) === undefined)
}

/** `/-/suggest?q=`: suggestions in the form of OpenSearch. The path after the name is kept. */
async function suggest({ app, query: { q: text }, context, now }: SearchCall) {
  const { name, rest } = readSearchTerms(text, shortLinks(app)).at(-1) ?? { name: '', rest: '' }
  const user = await userAt(app, context)
  const shortName = name.slice(0, MAX_NAME_LENGTH)
  const suggestions = await suggestionsFor(app.links.db, shortName, user, now)
  const body = [
    text,
    suggestions.map(({ slug }) => slug + rest),
    suggestions.map(({ title }) => title),
    suggestions.map(({ slug }) => `${app.baseUrl()}/${slug}${encodeRest(rest)}`),
  ]
  return jsonReply(body, 200, {}, 'application/x-suggestions+json')
}

/**
 * The user at the browser. A page of another site that loads this address unseen counts as
 * anonymous: from the time of the reply it could learn what the user may find.
 */
async function userAt(app: LinksRoutes, { headers, actor, receivedAt }: SearchCall['context']) {
  if (isForeignLoad(headers)) return undefined
  return visitorOf(app.links.db, actor, receivedAt)
}

function redirect(location: string) {
  return { status: 302, headers: { location, 'cache-control': 'no-store' }, body: null }
}
