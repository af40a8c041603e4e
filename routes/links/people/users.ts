import * as Type from '../../../kernel/schema.ts'
import { Profile, User, userQueries } from '../../../db/links/people/users.ts'
import { countUpTo, MAX_COUNT } from '../../../html/parts.ts'
import { roleText, usersView, type UsersView } from '../../../html/links/people/users.ts'
import { badRequest } from '../../../kernel/fault.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import type { Outcome } from '../../../kernel/http/outcome.ts'
import { newForm, type View } from '../../../kernel/http/view.ts'
import { parsed, withDefault } from '../../../kernel/validate.ts'
import { DisabledChange, NewUser, RoleChange } from '../../../services/links/people/users/input.ts'
import {
  changeDisabled,
  changeRole,
  createUser,
} from '../../../services/links/people/users/accounts.ts'
import { admin, signedIn, token } from '../access.ts'
import { api, form, Id, page, type LinksRoutes } from '../kit.ts'
import { nextAddress, userList, type PageQuery } from '../paging.ts'

const PATH = '/-/admin/users'

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
    returns: { description: 'The profile', schema: Profile },
    answer({ caller: { id, email, display_name, role, created_at } }) {
      return { id, email, display_name, role, created_at }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/admin/users',
    access: admin(token('full', 'read')),
    id: 'listUsers',
    tag: 'Admin',
    summary: 'List all users by e-mail address.',
    query: userList.query,
    returns: userList.returns,
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
    answer: ({ app: { links }, actor, params, body }) =>
      changeRole({ ...links, actor }, params.id, body.role),
  }),

  api({
    method: 'PUT',
    path: '/api/v1/admin/users/:id/disabled',
    access: admin(token('full')),
    id: 'setDisabled',
    tag: 'Admin',
    summary: 'Disable a user, who then cannot sign in or use tokens, or enable the user again.',
    params: { id: Id },
    body: DisabledChange,
    returns: { description: 'The user as it is now', schema: User },
    refuses: [409],
    answer: ({ app: { links }, actor, params, body, now }) =>
      changeDisabled({ ...links, actor }, params.id, body.disabled, now),
  }),

  page({
    path: PATH,
    access: admin(signedIn),
    query: userList.query,
    answer: (call) => showUsers(call),
  }),

  form({
    path: PATH,
    access: admin(signedIn),
    query: userList.query,
    body: NewUser,
    async answer(call) {
      const { app, actor, body, now } = call
      const added = await createUser({ ...app.links, actor }, body, now)
      return { ...(await showUsers(call, { added })), done: ['added', added.email] }
    },
    refused: (call, refusedForm) => showUsers(call, { form: refusedForm }),
  }),

  form({
    path: `${PATH}/:id/role`,
    access: admin(signedIn),
    params: { id: Id },
    query: userList.query,
    body: RoleForm,
    async answer(call) {
      const { app, caller, actor, params, body } = call
      const stepsDown = params.id === caller.id && body.role === 'user'
      if (stepsDown && !body.acknowledge_own) {
        const way = 'say so with acknowledge_own=true when you mean it'
        throw badRequest(`you would remove your own admin role; ${way}`)
      }
      const changed = await changeRole({ ...app.links, actor }, params.id, body.role)
      // Without the role, the caller may not open this page any more.
      const done: Outcome = ['saved', 'the role']
      if (stepsDown) return { location: '/-/', done }
      const view = await showUsers(call, { changed, done: `Is ${roleText(changed.role)} now.` })
      return { ...view, done }
    },
  }),

  form({
    path: `${PATH}/:id/disabled`,
    access: admin(signedIn),
    params: { id: Id },
    query: userList.query,
    body: DisabledChange,
    async answer(call) {
      const { app, actor, params, body, now } = call
      const changed = await changeDisabled({ ...app.links, actor }, params.id, body.disabled, now)
      const verb = body.disabled ? 'disabled' : 'enabled'
      const view = await showUsers(call, { changed, done: `Is ${verb} now.` })
      return { ...view, done: [verb, changed.email] }
    },
  }),
]

type UsersCall = Call<LinksRoutes, User, unknown, PageQuery>

function readUsers({ app: { links }, query }: Pick<UsersCall, 'app' | 'query'>) {
  return userList.read(query, (slice) => userQueries.listUsers(links.db, slice))
}

/** The page of users that the query asks for. */
async function showUsers(call: UsersCall, state: Partial<UsersView> = {}): Promise<View> {
  const { caller, context } = call
  const { users, next_cursor } = await readUsers(call)
  const { count } = await userQueries.countUsers(call.app.links.db, { most: MAX_COUNT + 1 })
  const query = context.search === '' ? '' : `?${context.search}`
  const next = nextAddress({ ...context, path: PATH }, next_cursor)
  const page = { users, count: countUpTo(count, 'user'), query, next }
  const view = usersView({ viewer: caller, ...page, form: newForm(NewUser), ...state })
  return { ...view, location: `${PATH}${query}` }
}
