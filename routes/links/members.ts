import Type from 'typebox'
import { linkQueries, Owner } from '../../db/links/links.ts'
import { memberQueries, Share } from '../../db/links/members.ts'
import type { User } from '../../db/links/users.ts'
import { newForm, type Call } from '../../kernel/http/endpoint.ts'
import type { Done, FormState, View } from '../../kernel/http/view.ts'
import { mayRead } from '../../services/links/links.ts'
import {
  addOwner,
  endShare,
  type LinkChange,
  MemberForm,
  NewMember,
  removeOwner,
  shareLink,
} from '../../services/links/members.ts'
import { signedIn, token } from './access.ts'
import { api, form, Id, type LinksRoutes } from './endpoint.ts'
import { changeableLink, linkView, readableLink } from './links.ts'

const params = { id: Id }
const memberParams = { id: Id, uid: Id }

type MemberCall = Call<LinksRoutes, User, { readonly id: string }>

/** What the API and the forms call for each kind of member. */
const KINDS = {
  owners: { add: addOwner, remove: removeOwner, added: 'is a co-owner now', removed: 'Removed.' },
  shares: {
    add: shareLink,
    remove: endShare,
    added: 'may read the link now',
    removed: 'The share is ended.',
  },
} as const

/** `/links/{id}/owners` and `/links/{id}/shares`, and their forms on the page of a link. */
export const memberEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/links/:id/owners',
    access: token('full', 'read'),
    id: 'listOwners',
    tag: 'Owners',
    summary: 'List the owners of a link, the primary one first.',
    params,
    find: readableLink,
    returns: { description: 'All owners', schema: Type.Array(Owner) },
    async answer({ app: { links }, params: { id } }) {
      return [...(await memberQueries.listOwners(links.db, { link: id }))]
    },
  }),

  api({
    method: 'POST',
    path: '/api/v1/links/:id/owners',
    access: token('full'),
    id: 'addOwner',
    tag: 'Owners',
    summary: 'Make a user a co-owner.',
    params,
    find: changeableLink,
    body: NewMember,
    returns: { status: 201, description: 'The new co-owner', schema: Owner },
    refuses: [409],
    async answer(call) {
      return addOwner(changeOf(call), call.body.email)
    },
  }),

  api({
    method: 'DELETE',
    path: '/api/v1/links/:id/owners/:uid',
    access: token('full'),
    id: 'removeOwner',
    tag: 'Owners',
    summary: 'Remove a co-owner; the primary owner stays.',
    params: memberParams,
    returns: { description: 'No longer an owner' },
    async answer(call) {
      await removeOwner(changeOf(call), call.params.uid)
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/links/:id/shares',
    access: token('full', 'read'),
    id: 'listShares',
    tag: 'Shares',
    summary: 'List with whom a link is shared.',
    params,
    find: readableLink,
    returns: { description: 'All shares', schema: Type.Array(Share) },
    async answer({ app: { links }, params: { id } }) {
      return [...(await memberQueries.listShares(links.db, { link: id }))]
    },
  }),

  api({
    method: 'POST',
    path: '/api/v1/links/:id/shares',
    access: token('full'),
    id: 'shareLink',
    tag: 'Shares',
    summary: 'Let a user read a link.',
    params,
    find: changeableLink,
    body: NewMember,
    returns: { status: 201, description: 'The new share', schema: Share },
    refuses: [409],
    async answer(call) {
      return shareLink(changeOf(call), call.body.email)
    },
  }),

  api({
    method: 'DELETE',
    path: '/api/v1/links/:id/shares/:uid',
    access: token('full'),
    id: 'endShare',
    tag: 'Shares',
    summary: 'End a share.',
    params: memberParams,
    returns: { description: 'No longer shared' },
    async answer(call) {
      await endShare(changeOf(call), call.params.uid)
    },
  }),

  ...(['owners', 'shares'] as const).flatMap((kind) => [
    form({
      path: `/-/links/:id/${kind}`,
      access: signedIn,
      params,
      find: changeableLink,
      body: MemberForm,
      async answer(call) {
        const { add, added } = KINDS[kind]
        const { email } = await add(changeOf(call), call.body.email)
        return viewAfter(call, { done: `${email} ${added}.` })
      },
      refused(call, state) {
        const empty = newForm(MemberForm)
        const forms: Record<typeof kind, FormState> = { owners: empty, shares: empty }
        return linkView(call, call.found, { forms: { ...forms, [kind]: state } })
      },
    }),

    form({
      path: `/-/links/:id/${kind}/:uid/remove`,
      access: signedIn,
      params: memberParams,
      async answer(call) {
        const { remove, removed } = KINDS[kind]
        await remove(changeOf(call), call.params.uid)
        return viewAfter(call, { done: removed })
      },
    }),
  ]),
]

function changeOf({ app, caller, params, now }: MemberCall): LinkChange {
  return { db: app.links.db, caller, id: params.id, at: now }
}

/** The page of a link after a change. Users who removed themselves may no longer see it. */
async function viewAfter(call: MemberCall, state: { readonly done: string }): Promise<View | Done> {
  const { app, caller, params } = call
  const link = await linkQueries.findLink(app.links.db, { id: params.id, user: caller.id })
  if (link === undefined || !mayRead(link, caller)) return { location: '/-/' }
  return linkView(call, link, state)
}
