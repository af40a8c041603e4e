import Type from 'typebox'
import { deletedView } from '../../../html/links/names/deleted.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import {
  listDeletedLinks,
  RESTORE_DAYS,
  restoreLink,
} from '../../../services/links/names/deleted.ts'
import { signedIn, token } from '../access.ts'
import { action, api, Id, page, shortLinks, type LinksRoutes } from '../kit.ts'
import { linkReply } from './links/links.ts'
import { deletedList, newestFirst, nextAddress, type PageQuery } from '../paging.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

const tag = 'Deleted links'
const ROWS = 50
const PATH = '/-/deleted'

type DeletedCall = Pick<Call<LinksRoutes, Caller>, 'app' | 'caller' | 'context'>

/** Deleted links, and the way back. */
export const deletedEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/deleted-links',
    access: token('full', 'read'),
    id: 'listDeletedLinks',
    tag,
    summary: 'List deleted links that the caller owned, newest first; admins get all.',
    query: deletedList.query,
    returns: deletedList.returns,
    answer: ({ app: { links }, caller, query }) =>
      deletedList.read(query, (slice) => listDeletedLinks(links.db, caller, newestFirst(slice))),
  }),

  ...action({
    params: { id: Id },
    act: ({ app: { links }, caller, actor, params: { id }, now }) =>
      restoreLink({ ...links, actor }, caller, id, now),
    api: {
      method: 'POST',
      path: '/api/v1/links/:id/restore',
      access: token('full'),
      id: 'restoreLink',
      tag,
      summary: `Restore a link that was deleted in the last ${RESTORE_DAYS} days.`,
      returns: linkReply('The link as it was'),
      refuses: [409],
    },
    form: {
      path: `${PATH}/:id/restore`,
      access: signedIn,
      body: Type.Object({}),
      answer: (_call, { id, slug }) => ({ location: `/-/links/${id}`, done: ['restored', slug] }),
      refused: (call, { fault }) => listView(call, { limit: ROWS }, fault),
    },
  }),

  page({
    path: PATH,
    access: signedIn,
    query: Type.Pick(deletedList.query, ['cursor']),
    answer: (call) => listView(call, { ...call.query, limit: ROWS }),
  }),
]

async function listView(
  { app, caller, context }: DeletedCall,
  query: PageQuery,
  fault?: FormState['fault'],
): Promise<View> {
  const { deleted_links: links, next_cursor } = await deletedList.read(query, (slice) =>
    listDeletedLinks(app.links.db, caller, newestFirst(slice)),
  )
  const next = nextAddress({ ...context, path: PATH }, next_cursor)
  return deletedView({ links, next, days: RESTORE_DAYS, fault, short: shortLinks(app) })
}
