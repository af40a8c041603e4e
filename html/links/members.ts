import type { Change, Link, Owner } from '../../db/links/links.ts'
import type { Share } from '../../db/links/members.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { field, postForm, refusal, renewedBy, submit } from '../form.ts'
import { breakable, section, timeTag } from '../parts.ts'

/** Who has a link, and what was done to it. */
export interface MembersView {
  link: Link
  shares: readonly Share[]
  changes: readonly Change[]
  /** The limit of `changes`. */
  maxChanges: number
  mayChange: boolean
  forms: Readonly<Record<MemberKind, FormState>>
  /** E-mail addresses that the forms offer. */
  people: readonly string[]
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
    </div>
    ${history(view)}
  </div>`
}

function memberList(view: MembersView, kind: MemberKind, items: readonly Html[]): Html {
  const none = items.length === 0 && html`<p class="muted">Nobody except its owners.</p>`
  const content = html`${none}
    <ul class="members">
      ${items}
    </ul>
    ${addForm(view, kind)}`
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
  const { link, mayChange, forms, people } = view
  const form = { ...forms[kind], id: kind }
  const completed = { suggestions: people, ...renewedBy('/-/complete/people', `${kind}-email`) }
  const { label, add } = KINDS[kind]
  return (
    mayChange &&
    postForm(
      { class: 'stack', action: `/-/links/${link.id}/${kind}`, target: '#members' },
      html`${refusal(form)}
        ${field(form, 'email', label, {
          ...{ type: 'email', placeholder: 'name@example.com', ...completed },
        })}
        <p class="actions">${submit(add, { id: `${kind}-add` })}</p>`,
    )
  )
}

/** What was done to a link, newest first. */
function history({ changes, maxChanges }: MembersView): Html {
  const isFull = changes.length === maxChanges
  const content = html`${changeList(changes)}
  ${isFull && html`<p class="muted">These are the latest ${maxChanges} changes.</p>`}`
  return section('history-title', 'History', content, { id: 'history' })
}

/** Changes in sentences, with time and author. */
export function changeList(changes: readonly Change[]): Html {
  return html`<ol class="history">
    ${changes.map(({ at, actor, action, detail }) => {
      const done = ACTIONS[action]?.(detail) ?? action
      return html`<li>${timeTag(at)} <bdi>${actor}</bdi> ${done}.</li>`
    })}
  </ol>`
}

/** Words for each action. An action of a later version is shown by its name. */
const ACTIONS: Readonly<Record<string, (detail: Change['detail']) => Printable>> = {
  created: ({ url }) => html`made the link to ${value(url?.[1])}`,
  'owner added': ({ owner }) => html`made ${value(owner?.[1])} a co-owner`,
  'owner removed': ({ owner }) => html`ended the co-ownership of ${value(owner?.[0])}`,
  shared: ({ share }) => html`shared the link with ${value(share?.[1])}`,
  'share ended': ({ share }) => html`ended the share with ${value(share?.[0])}`,
  edited(detail) {
    const parts = Object.entries(detail).map(([name, values]) => edit(name, values))
    return parts.length === 0 ? 'saved the link as it was' : joined(parts)
  },
}

function edit(name: string, [before, after]: readonly unknown[]): Html {
  switch (name) {
    case 'append_path':
      return html`had further path ${after === true ? 'appended' : 'no longer appended'}`
    case 'tags':
      return tagEdit(before as readonly string[], after as readonly string[])
    case 'description':
      if (after === '') return html`removed the description`
      return html`${before === '' ? 'added' : 'changed'} the description`
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
  const removed = before.filter((tag) => !after.includes(tag))
  const changed = Object.entries({ added, removed }).filter(([, tags]) => tags.length > 0)
  const parts = changed.map(([verb, tags]) => {
    const noun = tags.length === 1 ? 'tag' : 'tags'
    return html`${verb} the ${noun} ${value(tags.join(', '))}`
  })
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
  return html`<q><bdi>${String(text)}</bdi></q>`
}
