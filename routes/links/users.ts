import Type from 'typebox'
import { User, userQueries } from '../../db/links/users.ts'
import { userRow, usersFragment, usersPage, type UsersView } from '../../html/links/users.ts'
import { newForm, type Call } from '../../kernel/http/endpoint.ts'
import type { View } from '../../kernel/http/view.ts'
import { parsed, withDefault } from '../../kernel/validate.ts'
import { linksFault } from '../../services/links/faults.ts'
import { changeRole, createUser, NewUser, RoleChange } from '../../services/links/users.ts'
import { admin, signedIn, token } from './access.ts'
import { api, form, Id, page, type LinksRoutes } from './endpoint.ts'
import { nextAddress, pageQuery, pageSchema, readPage, type PageQuery } from './paging.ts'

const PATH = '/-/admin/users'
const UserQuery = pageQuery('users')

/** A role as the page sends it: to give up one's own admin role takes a tick. */
const RoleForm = Type.Object({
  ...RoleChange.properties,
  acknowledge_own: parsed(withDefault(Type.Boolean(), false), '', (given) => given === true),
})

/** The caller's own profile, and for admins the list of users and their roles. */
export const userEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/users/me',
    access: token('full', 'read', 'create'),
    id: 'getProfile',
    tag: 'Users',
    summary: "Get the caller's own profile.",
    returns: { description: 'The profile', schema: User },
    answer: ({ caller: { id, email, display_name, role, created_at } }) => ({
      ...{ id, email, display_name, role, created_at },
    }),
  }),

  api({
    method: 'GET',
    path: '/api/v1/admin/users',
    access: admin(token('full', 'read')),
    id: 'listUsers',
    tag: 'Admin',
    summary: 'List all users by e-mail address.',
    query: UserQuery,
    returns: { description: 'A page of users', schema: pageSchema('users', User) },
    answer: (call) => readUsers(call),
  }),

  api({
    method: 'PUT',
    path: '/api/v1/admin/users/:id/role',
    access: admin(token('full')),
    id: 'setRole',
    tag: 'Admin',
    summary: 'Make a user an admin, or no longer one; the last admin stays one.',
    params: { id: Id },
    body: RoleChange,
    returns: { description: 'The user as it is now', schema: User },
    refuses: [409],
    answer: ({ app: { links }, params: { id }, body: { role } }) => changeRole(links.db, id, role),
  }),

  page({
    path: PATH,
    access: admin(signedIn),
    query: UserQuery,
    answer: (call) => usersView(call),
  }),

  form({
    path: PATH,
    access: admin(signedIn),
    query: UserQuery,
    body: NewUser,
    async answer(call) {
      const added = await createUser(call.app.links.db, call.body, call.now)
      return usersView(call, { added })
    },
    refused: (call, refusedForm) => usersView(call, { form: refusedForm }),
  }),

  form({
    path: `${PATH}/:id/role`,
    access: admin(signedIn),
    params: { id: Id },
    query: UserQuery,
    body: RoleForm,
    async answer(call) {
      const { caller, params, body } = call
      const stepsDown = params.id === caller.id && body.role === 'user'
      if (stepsDown && !body.acknowledge_own) {
        const message =
          'you would remove your own admin role; say so with acknowledge_own=true when you mean it'
        throw linksFault('BAD_REQUEST', message)
      }
      const changed = await changeRole(call.app.links.db, params.id, body.role)
      // Without the role, the caller may not open this page any more.
      if (stepsDown) return { location: '/-/' }
      return usersView(call, { changed })
    },
  }),
]

type UsersCall = Call<LinksRoutes, User, unknown, PageQuery>

function readUsers({ app: { links }, query }: Pick<UsersCall, 'app' | 'query'>) {
  return readPage('users', query, 'email', (after, limit) =>
    userQueries.listUsers(links.db, { after, limit }),
  )
}

/**
 * The page of users that the query asks for. A change of a role answers htmx with the user's row.
 */
async function usersView(call: UsersCall, state: Partial<UsersView> = {}): Promise<View> {
  const { users, next_cursor } = await readUsers(call)
  const { search } = call.context
  const view = {
    viewer: call.caller,
    users,
    query: search === '' ? '' : `?${search}`,
    next: nextAddress({ ...call.context, path: PATH }, next_cursor),
    form: newForm(NewUser),
    ...state,
  }
  const { changed } = state
  return {
    page: () => usersPage(view),
    fragment: () => (changed === undefined ? usersFragment(view) : userRow(changed, view)),
  }
}
