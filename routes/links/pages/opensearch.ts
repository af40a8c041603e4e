import type { User } from '../../../db/links/users.ts'
import { searchDescription } from '../../../html/links/opensearch.ts'
import { searchPage } from '../../../html/links/visits.ts'
import { queryOf, type Context } from '../../../kernel/http/context.ts'
import { isForeignLoad } from '../../../kernel/net/guard.ts'
import { bytesReply, htmlReply, jsonReply, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { searchLinks, searchOf } from '../../../services/links/lists.ts'
import {
  encodePath,
  readSearchTerms,
  termsOfLink,
  suggestionsFor,
} from '../../../services/links/visits.ts'
import { isSlug } from '../../../services/links/slug.ts'
import { LOCATION_LONGEST } from '../../../services/links/target.ts'
import { visitorOf } from '../../../services/links/users.ts'
import { faultReply, LOCATION_TOO_LONG } from '../faults.ts'
import type { LinksRoutes } from '../options.ts'

/** The most links that a search page names. */
const FOUND_MOST = 10
/** Longer text names nothing. */
const LONGEST = 200

/**
 * The search of browsers: its description, its suggestions and where it leads. None of them needs a
 * visitor who is signed in: links work without, and a stranger is told of public ones only.
 */
export function searchRoutes(options: LinksRoutes): readonly Route[] {
  const { links, baseUrl, shortKeyword, identify } = options
  const { db, clock, targets } = links

  /** Nobody for a page of another site that loads it unseen: its time would tell what the visitor may find. */
  const visitorAt = async (context: Context): Promise<User | undefined> =>
    isForeignLoad(context.headers)
      ? undefined
      : visitorOf(db, identify(context), context.receivedAt)

  /** `/-/go?q=`: to the link, else to what may have been meant. */
  async function go(context: Context): Promise<Reply> {
    const terms = readSearchTerms(queryOf(context).get('q') ?? '')
    if (terms.name === '') return leadTo('/-/')
    const now = context.receivedAt.getTime()
    const found = await termsOfLink(targets, terms, shortKeyword(), now)
    if (found !== undefined) {
      const location = `/${encodePath(found.name + found.rest)}`
      const fits = location.length <= LOCATION_LONGEST
      return fits ? leadTo(location) : faultReply(LOCATION_TOO_LONG, context)
    }
    const name = terms.name.slice(0, LONGEST)
    const visitor = await visitorAt(context)
    const view = {
      name,
      rest: encodePath(terms.rest),
      canCreate: isSlug(name.toLowerCase()),
      suggestions: await suggestionsFor(db, name, visitor),
      found: visitor === undefined ? null : await foundFor(visitor, name),
    }
    return htmlReply(searchPage(visitor, view))
  }

  async function foundFor(visitor: User, name: string) {
    const filter = { q: name, tag: '', visibility: '', role: '' } as const
    const search = searchOf(filter, visitor, 'all')
    return (await searchLinks(db, clock, search, undefined, FOUND_MOST)).links
  }

  /** `/-/suggest?q=`: OpenSearch suggestions, each with what followed the name. */
  async function suggest(context: Context): Promise<Reply> {
    const text = queryOf(context).get('q') ?? ''
    const { name, rest } = readSearchTerms(text)
    const visitor = await visitorAt(context)
    const suggestions = await suggestionsFor(db, name.slice(0, LONGEST), visitor)
    const completions = suggestions.map(({ slug }) => slug + rest)
    const body = [
      text,
      completions,
      suggestions.map(({ title }) => title),
      completions.map((completion) => `${baseUrl()}/${encodePath(completion)}`),
    ]
    return jsonReply(body, 200, {}, 'application/x-suggestions+json')
  }

  function describe(): Reply {
    const text = searchDescription({ baseUrl: baseUrl(), keyword: shortKeyword() })
    const type = 'application/opensearchdescription+xml'
    return bytesReply(text, type, { 'cache-control': 'no-cache' })
  }

  return [
    { method: 'GET', path: '/-/opensearch.xml', access: 'guarded', handle: describe },
    { method: 'GET', path: '/-/go', access: 'guarded', handle: go },
    { method: 'GET', path: '/-/suggest', access: 'guarded', handle: suggest },
  ]
}

function leadTo(location: string): Reply {
  return { status: 302, headers: { location, 'cache-control': 'no-store' }, body: null }
}
