import type { Change, Owner } from '../../db/links/links.ts'
import type { Share } from '../../db/links/members.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { field, postForm, refusal, submit } from '../form.ts'
import { timeTag } from '../parts.ts'

/** Who has a link, and what was done to it. */
export interface MembersView {
  readonly id: string
  readonly owners: readonly Owner[]
  readonly shares: readonly Share[]
  readonly changes: readonly Change[]
  /** The limit of `changes`. */
  readonly maxChanges: number
  readonly mayChange: boolean
  readonly forms: Readonly<Record<MemberKind, FormState>>
  /** What the last form did. */
  readonly done?: string
}

export type MemberKind = 'owners' | 'shares'

/** What people read about the two kinds; `whom` completes the name of a button that removes one. */
const KINDS = {
  owners: { label: 'Add a co-owner', add: 'Add co-owner', remove: 'Remove', whom: 'co-owner' },
  shares: { label: 'Share with', add: 'Share', remove: 'End', whom: 'the share with' },
} as const

/** The part of a link's page that changes with its members. */
export function linkMembers(view: MembersView): Html {
  const { owners, shares, done } = view
  return html`<div id="members">
    <p class="${done !== undefined && 'saved'}" role="status">${done}</p>
    <div class="cards">
      <section class="panel" aria-labelledby="owners-title">
        <h2 id="owners-title">Owners</h2>
        <ul class="members">
          ${owners.map((owner) => ownerItem(view, owner))}
        </ul>
        ${addForm(view, 'owners')}
      </section>
      <section class="panel" aria-labelledby="shares-title">
        <h2 id="shares-title">Shared with</h2>
        ${shares.length === 0 && html`<p class="muted">Nobody except its owners.</p>`}
        <ul class="members">
          ${shares.map((share) => shareItem(view, share))}
        </ul>
        ${addForm(view, 'shares')}
      </section>
    </div>
    ${history(view)}
  </div>`
}

function ownerItem(view: MembersView, owner: Owner): Html {
  return html`<li>
    <bdi>${owner.email}</bdi>
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
      <bdi>${email}</bdi>
      <span class="detail">by <bdi>${shared_by}</bdi>, ${timeTag(created_at)}</span>
    </span>
    ${removeForm(view, 'shares', share)}
  </li>`
}

function removeForm(
  { id, mayChange }: MembersView,
  kind: MemberKind,
  member: { readonly id: string; readonly email: string },
): Html | false {
  const { remove, whom } = KINDS[kind]
  const action = `/-/links/${id}/${kind}/${member.id}/remove`
  const label = html`${remove} <span class="hidden">${whom} ${member.email}</span>`
  return mayChange && postForm({ action, target: '#members' }, submit(label, {}))
}

function addForm({ id, mayChange, forms }: MembersView, kind: MemberKind): Html | false {
  const form = { ...forms[kind], id: kind }
  const { label, add } = KINDS[kind]
  return (
    mayChange &&
    postForm(
      { class: 'stack', action: `/-/links/${id}/${kind}`, target: '#members' },
      html`${refusal(form)}
        ${field(form, 'email', label, { type: 'email', placeholder: 'name@example.com' })}
        <p class="actions">${submit(add, { id: `${kind}-add` })}</p>`,
    )
  )
}

/** What was done to a link, newest first. */
function history({ changes, maxChanges }: MembersView): Html {
  const isFull = changes.length === maxChanges
  return html`<section id="history" aria-labelledby="history-title">
    <h2 id="history-title">History</h2>
    ${changeList(changes)}
    ${isFull && html`<p class="muted">These are the latest ${maxChanges} changes.</p>`}
  </section>`
}

/** Changes in sentences, with time and author. */
export function changeList(changes: readonly Change[]): Html {
  return html`<ol class="history">
    ${changes.map(
      (change) =>
        html`<li>${timeTag(change.at)} <bdi>${change.actor}</bdi> ${sentenceOf(change)}.</li>`,
    )}
  </ol>`
}

function sentenceOf({ action, detail }: Change): Printable {
  const { url, owner, share } = detail
  switch (action) {
    case 'created':
      return html`made the link to ${value(url?.[1])}`
    case 'owner added':
      return html`made ${value(owner?.[1])} a co-owner`
    case 'owner removed':
      return html`ended the co-ownership of ${value(owner?.[0])}`
    case 'shared':
      return html`shared the link with ${value(share?.[1])}`
    case 'share ended':
      return html`ended the share with ${value(share?.[0])}`
    case 'edited': {
      const parts = Object.entries(detail).map(([name, values]) => edit(name, values))
      return parts.length === 0 ? 'saved the link as it was' : joined(parts)
    }
    default:
      // A later version may add actions: its own word is better than nothing.
      return action
  }
}

function edit(name: string, [before, after]: readonly unknown[]): Html {
  switch (name) {
    case 'append_path':
      return html`had further path ${after === true ? 'appended' : 'no longer appended'}`
    case 'tags':
      return tagEdit(list(before), list(after))
    case 'description':
      return html`${after === '' ? 'removed' : before === '' ? 'added' : 'changed'} the description`
    default: {
      const field = name === 'url' ? 'address' : name
      if (after === '') return html`removed the ${field} ${value(before)}`
      if (before === '') return html`set the ${field} to ${value(after)}`
      return html`changed the ${field} from ${value(before)} to ${value(after)}`
    }
  }
}

function tagEdit(before: readonly string[], after: readonly string[]): Html {
  const added = after.filter((tag) => !before.includes(tag))
  const gone = before.filter((tag) => !after.includes(tag))
  const word = (tags: readonly string[]): string => (tags.length === 1 ? 'tag' : 'tags')
  const parts = [
    ...(added.length > 0 ? [html`added the ${word(added)} ${value(added.join(', '))}`] : []),
    ...(gone.length > 0 ? [html`removed the ${word(gone)} ${value(gone.join(', '))}`] : []),
  ]
  return html`${joined(parts)}`
}

/** Parts of a sentence: `a`, `a and b`, `a, b and c`. */
function joined(parts: readonly Html[]): readonly Html[] {
  return parts.map((part, at) => {
    if (at === 0) return part
    return html`${at === parts.length - 1 ? ' and ' : ', '}${part}`
  })
}

function value(text: unknown): Html {
  return html`<q><bdi>${typeof text === 'string' ? text : JSON.stringify(text ?? null)}</bdi></q>`
}

function list(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}
