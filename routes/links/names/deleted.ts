import * as Type from '../../../kernel/schema.ts'
import { deletedView, type RefusedRestore } from '../../../html/links/names/deleted.ts'
import type { Fault } from '../../../kernel/fault.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import {
  listDeletedLinks,
  RESTORE_DAYS,
  restoreLink,
} from '../../../services/links/names/deleted.ts'
import { withDefault } from '../../../kernel/validate.ts'
import {
  NewSlugForm,
  readNewSlugForm,
  restoredSlug,
} from '../../../services/links/names/links/input.ts'
import { signedIn, token } from '../access.ts'
import { action, api, form, Id, page, shortLinks, type LinksRoutes } from '../kit.ts'
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
    query: Type.Object({
      slug: restoredSlug,
      without_taken: withDefault(
        Type.Boolean({ description: 'Leave out names that other links have by now' }),
        false,
      ),
    }),
    act: ({ app: { links }, caller, actor, params: { id }, now, query }) =>
      restoreLink({ ...links, actor }, caller, id, now, { slug: undefined, ...query }),
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
      refused: (call, state) => refusedView(call, call.params.id, state),
    },
  }),

  form({
    path: `${PATH}/:id/restore-as`,
    access: signedIn,
    params: { id: Id },
    body: NewSlugForm,
    async answer({ app: { links }, caller, actor, params: { id }, body, now }) {
      const names = { ...readNewSlugForm(body), without_taken: true }
      const { slug } = await restoreLink({ ...links, actor }, caller, id, now, names)
      return { location: `/-/links/${id}`, done: ['restored', slug] }
    },
    refused: (call, state) => refusedView(call, call.params.id, state),
  }),

  page({
    path: PATH,
    access: signedIn,
    query: Type.Pick(deletedList.query, ['cursor']),
    answer: (call) => listView(call, { ...call.query, limit: ROWS }),
  }),
]

/** A link whose names are taken may come back without them, or under another name. */
function refusedView(
  call: DeletedCall,
  id: string,
  form: FormState & { fault: Fault },
): Promise<View> {
  const isTaken = form.fault.code === 'SLUG_CONFLICT'
  return listView(call, { limit: ROWS }, { id, form, isTaken })
}

async function listView(
  { app, caller, context }: DeletedCall,
  query: PageQuery,
  refused?: RefusedRestore,
): Promise<View> {
  const { deleted_links: links, next_cursor } = await deletedList.read(query, (slice) =>
    listDeletedLinks(app.links.db, caller, newestFirst(slice)),
  )
  const next = nextAddress({ ...context, path: PATH }, next_cursor)
  return deletedView({ links, next, days: RESTORE_DAYS, refused, short: shortLinks(app) })
}
