import { userQueries, type User } from '../../../db/links/users.ts'
import { adminLinksFragment, adminLinksPage } from '../../../html/links/admin.ts'
import {
  userRow,
  usersFragment,
  usersPage,
  type UsersView,
} from '../../../html/links/admin-users.ts'
import { queryOf, type Context } from '../../../kernel/http/context.ts'
import { validate } from '../../../kernel/validate.ts'
import { Fault, type FaultValue } from '../../../kernel/fault.ts'
import type { Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { listLinksByPrefix } from '../../../services/links/lists.ts'
import { refusal, type Refusal } from '../../../services/links/refusal.ts'
import { changeRole, createUser, isRole, NewUser } from '../../../services/links/users.ts'
import { isTicked, readForm } from '../../form.ts'
import { pageOrFragment, sentence } from '../../page-answers.ts'
import { readPage } from '../api/page.ts'
import { shortLinks, type LinksRoutes } from '../options.ts'
import { listed } from './next.ts'
import { fragmentOrPage, goTo, pageRoute, type PageCall } from './page.ts'
import { showsForm } from './shows-form.ts'

const USERS = '/-/admin/users'
const LINKS = '/-/admin/links'
const OWN_ROLE =
  'you would remove your own admin role; say so with acknowledge_own=true when you mean it'

/** `/-/admin/users` and `/-/admin/links`: for admins only. */
export function adminPages(options: LinksRoutes): readonly Route[] {
  const { db } = options.links

  /** The page of users that the query asks for. */
  async function usersView(
    viewer: User,
    context: Context,
    changes: Partial<UsersView> = {},
  ): Promise<UsersView | FaultValue> {
    const asked = readPage(context)
    if ('status' in asked) return asked
    const { after, limit } = asked
    const rows = await userQueries.listUsers(db, { after, limit: limit + 1 })
    const query = context.search === '' ? '' : `?${context.search}`
    const page = listed(rows, limit, ({ email }) => email, USERS, queryOf(context))
    const { shown: users, next } = page
    return { viewer, users, next, query, added: null, changed: null, refused: null, ...changes }
  }

  /** The answer to a form post: the fragment, or the page around it to a browser without script. */
  async function answer(
    { context, visitor }: PageCall,
    changes: Partial<UsersView>,
    status = 200,
  ): Promise<Reply | FaultValue> {
    const view = await usersView(visitor, context, changes)
    if ('status' in view) return view
    return fragmentOrPage(
      context,
      () => usersPage(view),
      () => usersFragment(view),
      status,
    )
  }

  async function add(call: PageCall): Promise<Reply | Refusal | FaultValue> {
    const { context } = call
    const form = await readForm(context)
    if ('status' in form) return form
    const page = readPage(context)
    if ('status' in page) return page
    const email = form.get('email') ?? ''
    const name = (form.get('name') ?? '').trim()
    const role = form.get('role') ?? 'user'
    try {
      const user = validate(NewUser, { email, name, role })
      return await answer(call, { added: await createUser(db, user, context.receivedAt) })
    } catch (error) {
      if (!(error instanceof Fault) || !showsForm(context)) throw error
      const refused = { email, name, role, field: error.field, message: sentence(error.message) }
      return answer(call, { refused }, error.status)
    }
  }

  async function setRole(call: PageCall): Promise<Reply | Refusal | FaultValue> {
    const { context, visitor, param } = call
    const form = await readForm(context)
    if ('status' in form) return form
    const page = readPage(context)
    if ('status' in page) return page
    const id = param('id').toLowerCase()
    const role = form.get('role')
    if (!isRole(role)) return refusal('INVALID_ROLE', 'role must be user or admin')
    const stepsDown = id === visitor.id && role === 'user'
    const acknowledged = isTicked(form, 'acknowledge_own')
    if (stepsDown && !acknowledged) return refusal('BAD_REQUEST', OWN_ROLE)
    const changed = await changeRole(db, id, role)
    // These pages are closed to who is no admin any more.
    if (stepsDown) return goTo(context, '/-/')
    const view = await usersView(visitor, context, { changed })
    if ('status' in view) return view
    return fragmentOrPage(
      context,
      () => usersPage(view),
      () => userRow(changed, view),
    )
  }

  return [
    pageRoute(options, {
      ...{ method: 'GET', path: USERS, admin: true },
      async answer({ context, visitor }) {
        const view = await usersView(visitor, context)
        if ('status' in view) return view
        return pageOrFragment(
          context,
          () => usersPage(view),
          () => usersFragment(view),
        )
      },
    }),
    pageRoute(options, { method: 'POST', path: USERS, admin: true, answer: add }),
    pageRoute(options, {
      ...{ method: 'POST', path: `${USERS}/:id/role`, admin: true },
      answer: setRole,
    }),
    pageRoute(options, {
      ...{ method: 'GET', path: LINKS, admin: true },
      async answer({ context, visitor }) {
        const asked = readPage(context)
        if ('status' in asked) return asked
        const { after, limit } = asked
        const query = queryOf(context)
        const prefix = (query.get('q') ?? '').trim()
        const rows = await listLinksByPrefix(db, prefix.toLowerCase(), after, limit + 1)
        const { shown: links, next } = listed(rows, limit, ({ slug }) => slug, LINKS, query)
        const view = { viewer: visitor, prefix, links, next, short: shortLinks(options) }
        return pageOrFragment(
          context,
          () => adminLinksPage(view),
          () => adminLinksFragment(view),
        )
      },
    }),
  ]
}
