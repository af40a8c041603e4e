import * as Type from '../../../kernel/schema.ts'
import type { TSchema } from '../../../kernel/schema.ts'
import { linkQueries, Owner } from '../../../db/links/names/links.ts'
import { Share } from '../../../db/links/names/members.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { preconditionOf } from '../../../kernel/http/headers.ts'
import type { Done, View } from '../../../kernel/http/view.ts'
import { mayRead } from '../../../services/links/names/links/links.ts'
import {
  addMember,
  handOver,
  type LinkChange,
  linkToHandOver,
  NewMember,
  OWNERS,
  removeMember,
  SHARES,
} from '../../../services/links/names/members/members.ts'
import { signedIn, token } from '../access.ts'
import { action, api, Id, type LinksRoutes } from '../kit.ts'
import { changeableLink, changeHeaders, linkReply, readableLink } from './links/links.ts'
import { linkView } from '../link.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

const params = { id: Id }

type MemberCall = Call<LinksRoutes, Caller, { id: string }>

/** What the API's document and the pages say of each kind of member. */
const KINDS = {
  owners: {
    kind: OWNERS,
    row: Owner as TSchema,
    tag: 'Owners',
    one: 'co-owner',
    list: { id: 'listOwners', summary: 'List the owners of a link, the primary one first.' },
    add: { id: 'addOwner', summary: 'Make a user, or a group, a co-owner.' },
    added: 'is a co-owner now',
    remove: { id: 'removeOwner', summary: 'Remove a co-owner; the primary owner stays.' },
    removed: ['No longer an owner', 'Removed.'],
  },
  shares: {
    kind: SHARES,
    row: Share as TSchema,
    tag: 'Shares',
    one: 'share',
    list: { id: 'listShares', summary: 'List the users and groups that a link is shared with.' },
    add: { id: 'shareLink', summary: 'Let a user, or a group, read a link.' },
    added: 'may read the link now',
    remove: { id: 'endShare', summary: 'End a share.' },
    removed: ['No longer shared', 'The share is ended.'],
  },
} as const

/** `/links/{id}/owners` and `/links/{id}/shares`, and their forms on the page of a link. */
export const memberEndpoints = (['owners', 'shares'] as const).flatMap((name) => {
  const { kind, row, tag, one, list, add, added, remove, removed } = KINDS[name]
  return [
    api({
      method: 'GET',
      path: `/api/v1/links/:id/${name}`,
      access: token('full', 'read'),
      tag,
      ...list,
      params,
      find: readableLink,
      returns: { description: `All ${name}`, schema: Type.Array(row) },
      answer: ({ app, params }) => kind.rows(app.links.db, { link: params.id }),
    }),

    ...action({
      params,
      find: changeableLink,
      body: NewMember,
      act: (call) => addMember(kind, changeOf(call), call.body.email),
      api: {
        method: 'POST',
        path: `/api/v1/links/:id/${name}`,
        access: token('full'),
        tag,
        ...add,
        returns: { status: 201, description: `The new ${one}`, schema: row },
        refuses: [409],
      },
      form: {
        path: `/-/links/:id/${name}`,
        access: signedIn,
        answer: (call, { email }) => viewAfter(call, `${email} ${added}.`),
        refused: (call, state) => linkView(call, call.found, { forms: { [name]: state } }),
      },
    }),

    ...action({
      params: { id: Id, uid: Id },
      act: (call) => removeMember(kind, changeOf(call), call.params.uid),
      api: {
        method: 'DELETE',
        path: `/api/v1/links/:id/${name}/:uid`,
        access: token('full'),
        tag,
        ...remove,
        returns: { description: removed[0] },
      },
      form: {
        path: `/-/links/:id/${name}/:uid/remove`,
        access: signedIn,
        answer: (call) => viewAfter(call, removed[1]),
      },
    }),
  ]
})

/** `/links/{id}/owner`, and its form on the page of a link. */
export const ownerEndpoints = action({
  params,
  find: ({ app, caller, params: { id } }) => linkToHandOver(app.links.db, id, caller),
  body: NewMember,
  act: (call) => handOver(changeOf(call), call.body.email, preconditionOf(call.context.headers)),
  api: {
    method: 'PUT',
    path: '/api/v1/links/:id/owner',
    access: token('full'),
    tag: 'Owners',
    id: 'handOverLink',
    summary: 'Make a user the primary owner; the former one stays a co-owner.',
    headers: changeHeaders,
    returns: linkReply('The link as it is now'),
    refuses: [412],
  },
  form: {
    path: '/-/links/:id/owner',
    access: signedIn,
    answer: (call, { owners }) => viewAfter(call, `${owners[0]?.email} is the primary owner now.`),
    refused: (call, state) => linkView(call, call.found, { forms: { owner: state } }),
  },
})

function changeOf({ app, caller, params, now }: MemberCall): LinkChange {
  const { db, takesGroups } = app.links
  return { db, caller, id: params.id, at: now, takesGroups: takesGroups() }
}

/** The page of a link after a change. Users who removed themselves may no longer see it. */
async function viewAfter(call: MemberCall, done: string): Promise<View | Done> {
  const { app, caller, params } = call
  const link = await linkQueries.findLink(app.links.db, { id: params.id, users: caller.ids })
  if (link === undefined || !mayRead(link, caller)) return { location: '/-/', done: ['saved'] }
  return { ...(await linkView(call, link, { done })), done: ['saved'] }
}
