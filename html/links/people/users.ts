import type { User } from '../../../db/links/people/users.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import {
  checkbox,
  field,
  hiddenField,
  postForm,
  refusal,
  select,
  submit,
  submitLine,
  VERBATIM,
} from '../../form.ts'
import { contentView } from '../../layout.ts'
import {
  breakable,
  countLine,
  disclosed,
  listTable,
  rowLink,
  saved,
  tableRow,
  timeTag,
} from '../../parts.ts'
import { adminTabs } from '../layout.ts'

/** What `/-/admin/users` shows. */
export interface UsersView {
  viewer: User
  users: readonly User[]
  /** How many there are in all. */
  count: string
  /** Query of the page that is shown, with its `?`; '' for the first one. */
  query: string
  next: string | null
  form: FormState
  /** A user who was just added. */
  added?: User
  /** A user who was just changed, and what was done. */
  changed?: User
  done?: string
}

const ROLES = [
  ['user', 'user'],
  ['admin', 'admin'],
] as const

export function usersView(view: UsersView): View {
  const { users, count, next, added, changed, form } = view
  const above = html`<h1>Users</h1>
    ${adminTabs('users')}`
  const content = html`<section id="users" aria-label="Users">
    ${added && saved(`${added.email} is ${roleText(added.role)} now.`, FOCUS)} ${countLine(count)}
    ${listTable({
      bodyId: 'user-rows',
      caption: 'Users by e-mail address',
      columns: ['E-mail', 'Name', 'Role', 'Since', 'Change'],
      kind: 'people',
      rows: users.map((user) => userRow(user, view)),
      more: { next },
    })}
    ${addForm(form)}
  </section>`
  const whole = contentView({ title: 'Users', section: 'admin', above }, content)
  // After a change of a user, htmx replaces the row of the user.
  return changed === undefined ? whole : { ...whole, fragment: () => userRow(changed, view) }
}

function userRow(user: User, { viewer, query, changed, done }: UsersView): Html {
  const { id, email, display_name, role, created_at, disabled_at } = user
  const self = id === viewer.id
  const message = changed?.id === id && saved(done, FOCUS)
  const change = self && role === 'admin' ? stepDown : changeRole
  return tableRow(
    { id: `user-${id}` },
    {
      type: html`${rowLink(linksOf(email), breakable(email))}
      ${self && html`<span class="badge">you</span>`}
      ${disabled_at !== null && html`<span class="badge ended">disabled</span>`}`,
      name: html`<bdi>${display_name}</bdi>`,
      verify: html`<span class="badge ${role === 'admin' && 'token'}">${role}</span>`,
      when: timeTag(created_at),
      change: html`${message} ${change(user, query)} ${!self && changeDisabled(user, query)}
        <a href="${linksOf(email)}#move-links"
          >Move links <span class="hidden">of ${email}</span></a
        >`,
    },
  )
}

/** The address of a user's links, which the row leads to. */
export function linksOf(email: string): string {
  return `/-/admin/links?${new URLSearchParams({ owner: email }).toString()}`
}

/** The message gets the focus, so that screen readers say it. */
const FOCUS = { tabindex: '-1', autofocus: true }

function changeRole({ id, email, role }: User, query: string): Html {
  const other = role === 'admin' ? 'user' : 'admin'
  const effect =
    other === 'admin'
      ? 'An admin sees and changes every link, and says who is an admin.'
      : 'Links of others are out of reach from then on, also for tokens.'
  const confirm = `Make ${email} ${roleText(other)}? ${effect}`
  const label = html`Make <span class="hidden">${email}</span> ${roleText(other)}`
  const form = postForm(
    { action: `/-/admin/users/${id}/role${query}`, target: 'closest tr', confirm },
    html`${hiddenField('role', other)}
      <p>${effect}</p>
      ${submit(label, { class: other === 'user' ? 'danger' : '' })}`,
  )
  return disclosed(`Make ${other}…`, form)
}

function changeDisabled({ id, email, disabled_at }: User, query: string): Html {
  const isDisabled = disabled_at !== null
  const verb = isDisabled ? 'Enable' : 'Disable'
  const effect = isDisabled
    ? 'Signing in works again, and so do tokens that have not ended.'
    : 'Signing in is refused, and tokens do not work. Links go on, and keep their owners.'
  const label = html`${verb} <span class="hidden">${email}</span>`
  const form = postForm(
    {
      action: `/-/admin/users/${id}/disabled${query}`,
      target: 'closest tr',
      confirm: `${verb} ${email}? ${effect}`,
    },
    html`${hiddenField('disabled', String(!isDisabled))}
      <p>${effect}</p>
      ${submit(label, { class: isDisabled ? '' : 'danger' })}`,
  )
  return disclosed(`${verb}…`, form)
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
      ${checkbox({ id: 'own' }, 'acknowledge_own', 'I give up my own admin role', { required: true })}
      ${submit('Give up admin', { class: 'danger' })}`,
  )
  return disclosed('Give up admin…', form)
}

function addForm(state: FormState): Html {
  const form = { id: 'user', ...state }
  return postForm(
    { id: 'add-user', class: 'panel stack', action: '/-/admin/users', target: '#users' },
    html`${refusal(form)}
      <h2>Add a user</h2>
      <p class="hint">People who sign in through the proxy are added automatically.</p>
      ${field(form, 'email', 'E-mail', { inputmode: 'email', ...VERBATIM })}
      ${field(form, 'name', 'Name (empty = the first part of the address)')}
      ${select(form, 'role', 'Role', ROLES)} ${submitLine('Add user', 'add-user-button')}`,
  )
}

/** A role with its article. */
export function roleText(role: User['role']): string {
  return role === 'admin' ? 'an admin' : 'a user'
}
