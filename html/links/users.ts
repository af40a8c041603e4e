import type { User } from '../../db/links/users.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { field, hiddenField, postForm, refusal, select, submit } from '../form.ts'
import { disclosed, moreLink, saved, listTable, timeTag } from '../parts.ts'
import { adminTabs, linksPage } from './layout.ts'

/** What `/-/admin/users` shows. */
export interface UsersView {
  readonly viewer: User
  readonly users: readonly User[]
  /** Query of the page that is shown, with its `?`; '' for the first one. */
  readonly query: string
  readonly next: string | null
  readonly form: FormState
  /** A user who was just added. */
  readonly added?: User
  /** A user whose role was just changed. */
  readonly changed?: User
}

const ROLES = [
  ['user', 'user'],
  ['admin', 'admin'],
] as const

export function usersPage(view: UsersView): Html {
  const body = html`<h1>Users</h1>
    ${adminTabs('users')} ${usersFragment(view)}`
  return linksPage(view.viewer, { title: 'Users', section: 'admin', body })
}

/** The list with its form, and the reply to the form. */
export function usersFragment(view: UsersView): Html {
  const { users, next, added, form } = view
  return html`<section id="users" aria-label="Users">
    ${added !== undefined && saved(`${added.email} is ${withArticle(added.role)} now.`, FOCUS)}
    ${listTable({
      bodyId: 'user-rows',
      caption: 'Users by e-mail address',
      columns: ['E-mail', 'Name', 'Role', 'Since', 'Change'],
      kind: 'people',
      rows: users.map((user) => userRow(user, view)),
    })}
    ${moreLink({ rows: 'user-rows', next })} ${addForm(form)}
  </section>`
}

/** One user, and the reply to a change of the user's role. */
export function userRow(
  user: User,
  { viewer, query, changed }: Pick<UsersView, 'viewer' | 'query' | 'changed'>,
): Html {
  const { id, email, display_name, role, created_at } = user
  const self = id === viewer.id
  return html`<tr role="row" id="user-${id}">
    <td role="cell" class="type">${email} ${self && html`<span class="badge">you</span>`}</td>
    <td role="cell"><bdi>${display_name}</bdi></td>
    <td role="cell" class="verify">
      <span class="badge ${role === 'admin' && 'token'}">${role}</span>
    </td>
    <td role="cell" class="when">${timeTag(created_at)}</td>
    <td role="cell" class="change">
      ${changed?.id === id && saved(`Is ${withArticle(role)} now.`, FOCUS)}
      ${self && role === 'admin' ? stepDown(user, query) : changeRole(user, query)}
    </td>
  </tr>`
}

/** The message gets the focus, so that screen readers say it. */
const FOCUS = { tabindex: '-1', autofocus: true }

function changeRole({ id, email, role }: User, query: string): Html {
  const other = role === 'admin' ? 'user' : 'admin'
  const effect =
    other === 'admin'
      ? 'An admin sees and changes every link, and says who is an admin.'
      : 'Links of others are out of reach from then on, also for tokens.'
  const confirm = `Make ${email} ${withArticle(other)}? ${effect}`
  const label = html`Make <span class="hidden">${email}</span> ${withArticle(other)}`
  const form = postForm(
    { action: `/-/admin/users/${id}/role${query}`, target: 'closest tr', confirm },
    html`${hiddenField('role', other)}
      <p>${effect}</p>
      ${submit(label, { class: other === 'user' ? 'danger' : '' })}`,
  )
  return disclosed(`Make ${other}…`, form)
}

/** To give up one's own admin role takes a tick and a confirmation. */
function stepDown({ id, email }: User, query: string): Html {
  const confirm = 'Remove your own admin role? You will not see these pages any more.'
  const form = postForm(
    { action: `/-/admin/users/${id}/role${query}`, confirm },
    html`${hiddenField('role', 'user')}
      <p class="note">
        This is your own account: you will not see these pages any more. Only another admin, or
        <code>gatehouse user role ${email} admin</code> on the host, makes you an admin again.
      </p>
      <label class="choice">
        <input type="checkbox" name="acknowledge_own" value="true" required />
        <span>I give up my own admin role</span>
      </label>
      ${submit('Give up admin', { class: 'danger' })}`,
  )
  return disclosed('Give up admin…', form)
}

function addForm(state: FormState): Html {
  const form = { id: 'user', ...state }
  const verbatim = { autocapitalize: 'off', spellcheck: 'false' }
  return postForm(
    { id: 'add-user', class: 'panel stack', action: '/-/admin/users', target: '#users' },
    html`${refusal(form)}
      <h2>Add a user</h2>
      <p class="hint">People who sign in through the proxy are added automatically.</p>
      ${field(form, 'email', 'E-mail', { inputmode: 'email', ...verbatim })}
      ${field(form, 'name', 'Name (empty = the first part of the address)')}
      ${select(form, 'role', 'Role', ROLES)}
      <p class="field">${submit('Add user', { class: 'primary', id: 'add-user-button' })}</p>`,
  )
}

/** A role with its article. */
function withArticle(role: User['role']): string {
  return role === 'admin' ? 'an admin' : 'a user'
}
