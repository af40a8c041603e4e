import type { User } from '../../db/links/users.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listTable } from '../table.ts'
import { timeTag } from '../text.ts'
import { adminTabs } from './admin.ts'
import { linksPage } from './layout.ts'
import { moreLink } from '../parts.ts'

/** What `/-/admin/users` shows. */
export interface UsersView {
  readonly viewer: User
  readonly users: readonly User[]
  /** Query of the page that is shown, with its `?`; '' for the first one. */
  readonly query: string
  readonly next: string | null
  /** Somebody who was just added. */
  readonly added: User | null
  /** Whose role was just changed. */
  readonly changed: User | null
  /** What was typed into the form that was refused, and why. */
  readonly refused:
    | (UserForm & { readonly field: string | undefined; readonly message: string })
    | null
}

/** The fields of the form, as they were typed. */
export interface UserForm {
  readonly email: string
  readonly name: string
  readonly role: string
}

type Listing = Pick<UsersView, 'viewer' | 'query' | 'changed'>

const EMPTY: UserForm = { email: '', name: '', role: 'user' }

export function usersPage(view: UsersView): Html {
  const body = html`<h1>Users</h1>
    ${adminTabs('users')} ${usersFragment(view)}`
  return linksPage(view.viewer, { title: 'Users', section: 'admin', body })
}

/** The list with its form, and the answer to the form. */
export function usersFragment(view: UsersView): Html {
  const { users, next, added } = view
  return html`<section id="users" aria-label="Users">
    ${
      added !== null &&
      html`<p class="saved" role="status" tabindex="-1" autofocus>
        ${added.email} is ${named(added.role)} now.
      </p>`
    }
    ${listTable({
      bodyId: 'user-rows',
      caption: 'Users by e-mail address',
      columns: ['E-mail', 'Name', 'Role', 'Since', 'Change'],
      kind: 'people',
      rows: users.map((user) => userRow(user, view)),
    })}
    ${moreLink({ rows: 'user-rows', next })} ${addForm(view)}
  </section>`
}

/** One user, and the answer to a change of the user's role. */
export function userRow(user: User, { viewer, query, changed }: Listing): Html {
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
      ${
        changed?.id === id &&
        html`<p class="saved" role="status" tabindex="-1" autofocus>Is ${named(role)} now.</p>`
      }
      ${self && role === 'admin' ? stepDown(user, query) : changeRole(user, query)}
    </td>
  </tr>`
}

/** What one stray click must not do stands behind a disclosure. */
function changeRole({ id, email, role }: User, query: string): Html {
  const other = role === 'admin' ? 'user' : 'admin'
  const effect =
    other === 'admin'
      ? 'An admin sees and changes every link, and says who is an admin.'
      : 'Links of others are out of reach from then on, also for tokens.'
  return html`<details class="changes">
    <summary>Make ${other}…</summary>
    <form
      method="post"
      action="/-/admin/users/${id}/role${query}"
      hx-post="/-/admin/users/${id}/role${query}"
      hx-target="closest tr"
      hx-swap="outerHTML"
      hx-confirm="Make ${email} ${named(other)}? ${effect}"
    >
      <input type="hidden" name="role" value="${other}" />
      <p>${effect}</p>
      <button type="submit" class="${other === 'user' && 'danger'}">
        Make <span class="hidden">${email}</span> ${named(other)}
      </button>
    </form>
  </details>`
}

/** One's own admin role: it is said what that means, and asked for twice. */
function stepDown({ id, email }: User, query: string): Html {
  return html`<details class="changes">
    <summary>Give up admin…</summary>
    <form
      method="post"
      action="/-/admin/users/${id}/role${query}"
      hx-post="/-/admin/users/${id}/role${query}"
      hx-confirm="Remove your own admin role? You will not see these pages any more."
    >
      <input type="hidden" name="role" value="user" />
      <p class="note">
        This is your own account: you will not see these pages any more. Only another admin, or
        <code>gatehouse user role ${email} admin</code> on the host, makes you an admin again.
      </p>
      <label class="choice">
        <input type="checkbox" name="acknowledge_own" value="true" required />
        <span>I give up my own admin role</span>
      </label>
      <button type="submit" class="danger">Give up admin</button>
    </form>
  </details>`
}

function addForm({ refused }: UsersView): Html {
  const { email, name, role } = refused ?? EMPTY
  const wrong = (field: string): Html | false =>
    refused?.field === field && html`aria-invalid="true" aria-describedby="user-refused" autofocus`
  return html`<form
    id="add-user"
    class="panel stack"
    method="post"
    action="/-/admin/users"
    hx-post="/-/admin/users"
    hx-target="#users"
    hx-swap="outerHTML"
  >
    ${refused !== null && html`<p id="user-refused" class="refused" role="alert">${refused.message}</p>`}
    <h2>Add a user</h2>
    <p class="hint">Whom the proxy signs in becomes a user without this.</p>
    <div class="field">
      <label>
        E-mail
        <input
          name="email"
          id="user-email"
          value="${email}"
          required
          maxlength="254"
          inputmode="email"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
          ${wrong('email')}
        />
      </label>
    </div>
    <div class="field">
      <label>
        Name (empty = the first part of the address)
        <input
          name="name"
          id="user-name"
          value="${name}"
          maxlength="100"
          autocomplete="off"
          ${wrong('name')}
        />
      </label>
    </div>
    <div class="field">
      <label>
        Role
        <select name="role" id="user-role" ${wrong('role')}>
          <option value="user" ${role === 'user' && html`selected`}>user</option>
          <option value="admin" ${role === 'admin' && html`selected`}>admin</option>
        </select>
      </label>
    </div>
    <p class="field">
      <button type="submit" class="primary" id="add-user-button">Add user</button>
    </p>
  </form>`
}

/** A role with its article. */
function named(role: User['role']): string {
  return role === 'admin' ? 'an admin' : 'a user'
}
