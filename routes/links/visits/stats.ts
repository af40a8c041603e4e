import * as Type from '../../../kernel/schema.ts'
import type { LinkAccess } from '../../../db/links/names/links.ts'
import { usageView } from '../../../html/links/visits/stats/usage.ts'
import { forbidden } from '../../../kernel/fault.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { decodeCursor, encodeCursor } from '../../../kernel/cursor.ts'
import { parsed } from '../../../kernel/validate.ts'
import { endOf } from '../../../services/links/names/links/lifecycle.ts'
import { linkFor, mayChange } from '../../../services/links/names/links/links.ts'
import { OTHER_LIST } from '../../../services/links/names/lists/filter.ts'
import {
  mostUsedLinks,
  Stats,
  statsOf,
  UNUSED_DAYS,
  unusedLinks,
  type UnusedPlace,
} from '../../../services/links/visits/stats.ts'
import { admin, signedIn, token } from '../access.ts'
import { api, Id, page, shortLinks, type LinksRoutes } from '../kit.ts'
import { nextAddress } from '../paging.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

const MOST_USED = 20
const ROWS = 50

const UsageQuery = Type.Object({
  cursor: parsed(
    Type.Optional(Type.Unsafe<UnusedPlace>({ type: 'string' })),
    OTHER_LIST,
    (given): UnusedPlace | undefined => {
      const [after, of, time] = decodeCursor(String(given)) ?? []
      if (typeof after !== 'string' || after.includes('\0') || of !== 'unused') return undefined
      const used_at = new Date(Number(time))
      return Number.isNaN(used_at.getTime()) ? undefined : { used_at, after }
    },
  ),
})

/** The statistics of a link, and which links are used. */
export const statsEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/links/:id/stats',
    access: token('full', 'read'),
    id: 'getStats',
    tag: 'Links',
    summary: 'Get how often a link is visited, from where and with what; for owners and admins.',
    params: { id: Id },
    find: measurableLink,
    returns: { description: 'Its statistics', schema: Stats },
    answer: ({ app, params: { id }, now }) => statsOf(app.links, id, now),
  }),

  page({
    path: '/-/usage',
    access: signedIn,
    query: UsageQuery,
    answer: (call) => usageOf(call, 'own'),
  }),

  page({
    path: '/-/admin/usage',
    access: admin(signedIn),
    query: UsageQuery,
    answer: (call) => usageOf(call, 'all'),
  }),
]

/** The link of a call; throws 404, or 403 for people who may not change it. */
async function measurableLink({
  app,
  caller,
  params,
}: Call<LinksRoutes, Caller, { id: string }>): Promise<LinkAccess> {
  const link = await linkFor(app.links.db, params.id, caller, 'read')
  if (mayChange(link, caller)) return link
  throw forbidden('the statistics of a link are for its owners and for admins')
}

type UsageCall = Call<LinksRoutes, Caller, unknown, { cursor?: UnusedPlace }>

async function usageOf({ app, caller, context, query, now }: UsageCall, among: 'own' | 'all') {
  const { db } = app.links
  const owners = among === 'own' ? caller.ids : null
  const from = query.cursor
  const [mostUsed, rows] = await Promise.all([
    from === undefined ? mostUsedLinks(db, owners, MOST_USED) : undefined,
    unusedLinks(db, owners, now, { from, limit: ROWS + 1 }),
  ])
  const unused = rows.slice(0, ROWS)
  const last = rows.length > ROWS ? unused.at(-1) : undefined
  const cursor =
    last === undefined ? null : encodeCursor([last.slug, 'unused', last.used_at.getTime()])
  return usageView({
    among,
    mostUsed,
    unused,
    days: UNUSED_DAYS,
    next: nextAddress(context, cursor),
    endOf: (link) => endOf(link, now),
    short: shortLinks(app),
  })
}
