import * as Type from '../../../../kernel/schema.ts'
import { historyQueries } from '../../../../db/links/names/history.ts'
import type { LinkAccess } from '../../../../db/links/names/links.ts'
import { textsOf } from '../../../../html/links/names/history.ts'
import { historyPage, versionView } from '../../../../html/links/names/links/versions.ts'
import type { Call } from '../../../../kernel/http/declaration.ts'
import { preconditionOf } from '../../../../kernel/http/headers.ts'
import { parsed } from '../../../../kernel/validate.ts'
import type { View } from '../../../../kernel/http/view.ts'
import { restoreVersion, versionAfter } from '../../../../services/links/names/history.ts'
import { mayChange, plainLink, versionOf } from '../../../../services/links/names/links/links.ts'
import { signedIn, token } from '../../access.ts'
import { api, form, Id, page, shortLinks, type LinksRoutes } from '../../kit.ts'
import {
  changeableLink,
  changeHeaders,
  linkReply,
  readableLink,
  shownVersion,
} from '../links/links.ts'
import { historyOf } from './changes.ts'
import { changeList, newestFirst } from '../../paging.ts'
import type { Caller } from '../../../../services/links/people/users/groups.ts'

const params = { id: Id }
const ChangeId = parsed(
  Type.Integer({ minimum: 1, description: 'The id of a change' }),
  'in the path must be the number of a change',
  (given) => (typeof given === 'number' && given >= 1 ? given : undefined),
)
const versionParams = { id: Id, change: ChangeId }

type VersionCall = Call<LinksRoutes, Caller, { id: string; change: number }, unknown, LinkAccess>

/** The history of a link, and the way back to one of its versions. */
export const historyEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/links/:id/history',
    access: token('full', 'read'),
    id: 'listChanges',
    tag: 'History',
    summary: 'List who changed what of a link, newest first.',
    params,
    query: changeList.query,
    find: readableLink,
    returns: changeList.returns,
    answer: ({ app, params: { id }, query }) =>
      changeList.read(query, (slice) =>
        historyQueries.listChanges(app.links.db, { link: id, ...newestFirst(slice) }),
      ),
  }),

  api({
    method: 'POST',
    path: '/api/v1/links/:id/history/:change/restore',
    access: token('full'),
    id: 'restoreVersion',
    tag: 'History',
    summary: "Write a link's fields again as they were after a change; owners and shares stay.",
    params: versionParams,
    headers: changeHeaders,
    find: changeableLink,
    returns: linkReply('The link as it is now'),
    refuses: [412, 500],
    answer: ({ app, caller, params: { id, change }, now, context }) =>
      restoreVersion(
        app.links,
        caller,
        { link: id, change },
        now,
        preconditionOf(context.headers),
      ),
  }),

  page({
    path: '/-/links/:id/history',
    access: signedIn,
    params,
    query: Type.Pick(changeList.query, ['cursor']),
    find: readableLink,
    async answer({ app, caller, query: { cursor }, found }) {
      const history = await historyOf(app.links.db, found, {
        mayRestore: mayChange(found, caller),
        cursor,
      })
      return { page: () => historyPage(history, shortLinks(app)) }
    },
  }),

  page({
    path: '/-/links/:id/history/:change',
    access: signedIn,
    params: versionParams,
    find: changeableLink,
    answer: (call) => viewOf(call, call.found),
  }),

  form({
    path: '/-/links/:id/history/:change/restore',
    access: signedIn,
    params: versionParams,
    find: changeableLink,
    body: Type.Object({ version: Type.Optional(Type.String()) }),
    async answer({ app, caller, params: { id, change }, body: { version }, now }) {
      const asked = { link: id, change }
      await restoreVersion(app.links, caller, asked, now, shownVersion(version))
      return { location: `/-/links/${id}`, done: ['restored', 'the version'] }
    },
    async refused(call, { fault }) {
      if (fault.code !== 'PRECONDITION_FAILED') throw fault
      return viewOf(call, await changeableLink(call), true)
    },
  }),
]

/** An earlier version and the present one. */
async function viewOf(
  { app, params: { change: id } }: Pick<VersionCall, 'app' | 'params'>,
  found: LinkAccess,
  isStale = false,
): Promise<View> {
  const link = plainLink(found)
  const { change, fields } = await versionAfter(app.links.db, link, id)
  const texts = { then: textsOf({ ...link, ...fields }), now: textsOf(link) }
  const view = { link, change, ...texts, version: versionOf(link), isStale }
  return versionView(view, shortLinks(app))
}
