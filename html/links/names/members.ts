import type { LinkAccess, Owner } from '../../../db/links/names/links.ts'
import type { Share } from '../../../db/links/names/members.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState } from '../../../kernel/http/view.ts'
import { field, postForm, refusal, renewedBy, submit, VERBATIM } from '../../form.ts'
import { breakable, disclosed, section, timeTag } from '../../parts.ts'
import { namesSection } from './aliases.ts'
import { historySection, type HistoryView } from './history.ts'

/** Who has a link, its names, and what was done to it. */
export interface MembersView {
  link: LinkAccess
  shares: readonly Share[]
  history: HistoryView
  mayChange: boolean
  mayHandOver: boolean
  /** Whether the form that hands the link over is asked for. */
  handsOver: boolean
  forms: Readonly<Record<MemberKind | 'owner' | 'slug', FormState>>
  /** E-mail addresses that the forms offer. */
  people: readonly string[]
  /** The same with groups, where groups may be members. */
  members: readonly string[]
  /** Whether groups may be members. */
  takesGroups: boolean
  /** What the last form did. */
  done: string | undefined
}

type MemberKind = 'owners' | 'shares'

/** The texts of the two kinds. Screen readers say `hidden` after the label of a removal button. */
const KINDS = {
  owners: {
    title: 'Owners',
    label: 'Add a co-owner',
    add: 'Add co-owner',
    remove: 'Remove',
    hidden: 'co-owner',
  },
  shares: {
    title: 'Shared with',
    label: 'Share with',
    add: 'Share',
    remove: 'End',
    hidden: 'the share with',
  },
} as const

/** The part of a link's page that changes with its members. */
export function linkMembers(view: MembersView): Html {
  const { link, shares, done } = view
  const ownerItems = link.owners.map((owner) => ownerItem(view, owner))
  const shareItems = shares.map((share) => shareItem(view, share))
  return html`<div id="members">
    <p class="${done !== undefined && 'saved'}" role="status">${done}</p>
    <div class="cards">
      ${memberList(view, 'owners', ownerItems)} ${memberList(view, 'shares', shareItems)}
      ${namesSection({ ...view, form: view.forms.slug })}
    </div>
    ${historySection(view.history)}
  </div>`
}

function memberList(view: MembersView, kind: MemberKind, items: readonly Html[]): Html {
  const none = items.length === 0 && html`<p class="muted">Nobody except its owners.</p>`
  const content = html`${none}
    <ul class="members">
      ${items}
    </ul>
    ${addForm(view, kind)} ${kind === 'owners' && handOverForm(view)}`
  return section(`${kind}-title`, KINDS[kind].title, content, { class: 'panel' })
}

function ownerItem(view: MembersView, owner: Owner): Html {
  return html`<li>
    <bdi>${breakable(owner.email)}</bdi>
    ${
      owner.is_primary
        ? html`<span class="badge">primary</span>`
        : removeForm(view, 'owners', owner)
    }
  </li>`
}

function shareItem(view: MembersView, share: Share): Html {
  const { email, shared_by, created_at } = share
  return html`<li>
    <span>
      <bdi>${breakable(email)}</bdi>
      <span class="detail">by <bdi>${shared_by}</bdi>, ${timeTag(created_at)}</span>
    </span>
    ${removeForm(view, 'shares', share)}
  </li>`
}

function removeForm(view: MembersView, kind: MemberKind, member: Owner | Share): Html | false {
  const { link, mayChange } = view
  const { remove, hidden } = KINDS[kind]
  const action = `/-/links/${link.id}/${kind}/${member.id}/remove`
  const label = html`${remove} <span class="hidden">${hidden} ${member.email}</span>`
  return mayChange && postForm({ action, target: '#members' }, submit(label, {}))
}

function addForm(view: MembersView, kind: MemberKind): Html | false {
  const { link, mayChange, forms, members, takesGroups } = view
  const form = { ...forms[kind], id: kind }
  const completed = { suggestions: members, ...renewedBy('/-/complete/members', `${kind}-email`) }
  // A browser would take `group:ops` for a wrong address.
  const typed = takesGroups
    ? { ...VERBATIM, placeholder: 'name@example.com, group:ops' }
    : { type: 'email', placeholder: 'name@example.com' }
  const { label, add } = KINDS[kind]
  return (
    mayChange &&
    postForm(
      { class: 'stack', action: `/-/links/${link.id}/${kind}`, target: '#members' },
      html`${refusal(form)} ${field(form, 'email', label, { ...typed, ...completed })}
        <p class="actions">${submit(add, { id: `${kind}-add` })}</p>`,
    )
  )
}

/** The page of a link with the form that hands it over open. */
export function handOverPath(id: string): string {
  return `/-/links/${id}?hand_over=true`
}

/** Gives the link another primary owner. */
function handOverForm({ link, mayHandOver, handsOver, forms, people }: MembersView): Html | false {
  const form = { ...forms.owner, id: 'owner' }
  const completed = { suggestions: people, ...renewedBy('/-/complete/people', 'owner-email') }
  const content = postForm(
    { class: 'stack', action: `/-/links/${link.id}/owner`, target: '#members' },
    html`${refusal(form)}
      <p>The new primary owner can't be removed. The present one stays a co-owner.</p>
      ${field(form, 'email', 'New primary owner', {
        type: 'email',
        placeholder: 'name@example.com',
        ...completed,
        autofocus: handsOver,
      })}
      <p class="actions">${submit('Hand over', { id: 'owner-add' })}</p>`,
  )
  return (
    mayHandOver &&
    disclosed('Hand over…', content, { open: handsOver || form.fault !== undefined })
  )
}
