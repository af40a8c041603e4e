import Type from 'typebox'
import { Link, type LinkAccess } from '../../../db/links/links.ts'
import { memberQueries } from '../../../db/links/members.ts'
import { deletePage, linkPage } from '../../../html/links/links/links.ts'
import { linkMembers, type MembersView } from '../../../html/links/members.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { withDefault } from '../../../kernel/validate.ts'
import { entityTag, preconditionOf } from '../../../kernel/http/headers.ts'
import { newForm, type View } from '../../../kernel/http/view.ts'
import { peopleCompletions } from '../../../services/links/links/completions.ts'
import { RESTORE_DAYS } from '../../../services/links/deleted.ts'
import { LinkUpdate, NewSlugForm } from '../../../services/links/links/input.ts'
import { healthOf } from '../../../services/links/health/health.ts'
import { endOf, refusePastExpiry } from '../../../services/links/links/lifecycle.ts'
import {
  deleteLink,
  linkFor,
  mayChange,
  plainLink,
  replaceLink,
  versionOf,
} from '../../../services/links/links/links.ts'
import { cursorAt, LinksQuery } from '../../../services/links/lists/filter.ts'
import { findLinks } from '../../../services/links/lists/lists.ts'
import { mayHandOver, NewMember } from '../../../services/links/members.ts'
import { lastDaysOf } from '../../../services/links/stats.ts'
import { signedIn, token } from '../access.ts'
import { historyOf } from '../lists/changes.ts'
import { action, api, Id, page, shortLinks, type LinksRoutes } from '../kit.ts'
import { linkList } from '../lists/paging.ts'
import { isGroup, type Caller } from '../../../services/links/users/groups.ts'

const tag = 'Links'
const params = { id: Id }
const flag = withDefault(Type.Boolean(), false)

/** A call about one link. */
type LinkCall = Pick<Call<LinksRoutes, Caller, { id: string }>, 'app' | 'caller' | 'params'>

/** The headers of a change. */
export const changeHeaders = Type.Object({
  'If-Match': Type.Optional(
    Type.String({
      description: 'ETag of the version to change. Without it, the link is changed as it is.',
    }),
  ),
})

/** `/links` and `/links/{id}` (links.md section 4), and the pages of a link. */
export const linkEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/links',
    access: token('full', 'read'),
    id: 'listLinks',
    tag,
    summary: "List or search the caller's own and co-owned links; admins get all.",
    query: Type.Object({ ...linkList.query.properties, ...LinksQuery.properties }),
    returns: linkList.returns,
    async answer({ app, caller, query, now }) {
      const { cursor, limit, ...asked } = query
      const tools = { db: app.links.db, short: shortLinks(app), now }
      const { links, next } = await findLinks(tools, caller, asked, cursor, limit)
      return { links: [...links], next_cursor: cursorAt(next) }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/links/:id',
    access: token('full', 'read'),
    id: 'getLink',
    tag,
    summary: 'Get a link that the caller owns, co-owns or was given to read.',
    params,
    returns: linkReply('The link'),
    answer: async (call) => plainLink(await readableLink(call)),
  }),

  api({
    method: 'PUT',
    path: '/api/v1/links/:id',
    access: token('full'),
    id: 'replaceLink',
    tag,
    summary:
      'Replace what may change of a link; without title, description or tags, these are cleared.',
    params,
    headers: changeHeaders,
    find: changeableLink,
    body: LinkUpdate,
    returns: linkReply('The link as it is now'),
    refuses: [409, 412, 500],
    async answer({ app: { links }, caller, params: { id }, found, body, now, context }) {
      refusePastExpiry(body, now, found)
      return replaceLink(links, caller, id, body, now, preconditionOf(context.headers))
    },
  }),

  ...action({
    params,
    act: ({ app: { links }, caller, actor, params: { id }, now, context }) =>
      deleteLink({ ...links, actor }, caller, id, now, preconditionOf(context.headers)),
    api: {
      method: 'DELETE',
      path: '/api/v1/links/:id',
      access: token('full'),
      id: 'deleteLink',
      tag,
      summary: `Remove a link; its slug is free again. It can be restored for ${RESTORE_DAYS} days.`,
      headers: changeHeaders,
      returns: { description: 'It is gone' },
      refuses: [412],
    },
    form: {
      path: '/-/links/:id/delete',
      access: signedIn,
      answer: () => ({ location: '/-/', done: ['deleted', 'the link'] }),
    },
  }),

  page({
    path: '/-/links/:id',
    access: signedIn,
    params,
    query: Type.Object({ created: flag, hand_over: flag }),
    find: readableLink,
    answer(call) {
      const { created, hand_over } = call.query
      return linkView(call, call.found, { isNew: created, handsOver: hand_over })
    },
  }),

  page({
    path: '/-/links/:id/delete',
    access: signedIn,
    params,
    find: changeableLink,
    answer: ({ app, found }) => ({
      page: () => deletePage(found, RESTORE_DAYS, shortLinks(app)),
    }),
  }),
]

/** The link of a call; throws 404 or 403 when the caller may not read it. */
export function readableLink({ app, caller, params }: LinkCall) {
  return linkFor(app.links.db, params.id, caller, 'read')
}

/** The link of a call; throws 404 or 403 when the caller may not change it. */
export function changeableLink({ app, caller, params }: LinkCall) {
  return linkFor(app.links.db, params.id, caller, 'change')
}

/** What has led to the page of a link. */
interface LinkViewOptions {
  forms?: Partial<MembersView['forms']>
  /** What a form has done to the members. */
  done?: string
  /** Whether the link was created just now. */
  isNew?: boolean
  /** Whether the form that hands the link over is asked for. */
  handsOver?: boolean
}

/** The page of a link; its fragment is the part with its members. */
export async function linkView(
  { app, caller, now }: Pick<Call<LinksRoutes, Caller>, 'app' | 'caller' | 'now'>,
  link: LinkAccess,
  { forms, done, isNew = false, handsOver = false }: LinkViewOptions = {},
): Promise<View> {
  const { db } = app.links
  const isMine = mayChange(link, caller)
  const takesGroups = app.links.takesGroups()
  const [shares, history, offered] = await Promise.all([
    memberQueries.listShares(db, { link: link.id }),
    historyOf(db, link, { mayRestore: isMine }),
    isMine ? peopleCompletions(db, caller, '', { groups: takesGroups }) : [],
  ])
  const empty = newForm(NewMember)
  const members = {
    link,
    shares,
    history,
    done,
    mayChange: isMine,
    mayHandOver: mayHandOver(link, caller),
    handsOver,
    people: offered.filter((name) => !isGroup(name)),
    members: offered,
    takesGroups,
    forms: { owners: empty, shares: empty, owner: empty, slug: newForm(NewSlugForm), ...forms },
  }
  return {
    async page() {
      const stats = isMine ? await lastDaysOf(app.links, link.id, now) : undefined
      const isOn = app.links.checkInterval !== undefined
      const health = isOn ? await healthOf(db, link.id) : undefined
      return linkPage(members, { stats, end: endOf(link, now), health, isNew }, shortLinks(app))
    },
    fragment: () => linkMembers(members),
    location: `/-/links/${link.id}`,
  }
}

/** A link as a reply, with its entity tag. */
export function linkReply(description: string) {
  const etag = Type.String({ description: 'Another one after each change, for If-Match.' })
  return {
    description,
    schema: Link,
    headers: Type.Object({ ETag: etag }),
    headersOf: (link: Link) => ({ etag: entityTag(versionOf(link)) }),
  }
}
