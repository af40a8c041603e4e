import type { Change, Owner } from '../../db/links/links.ts'
import type { Share } from '../../db/links/members.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import { timeTag } from '../text.ts'

/** What was done to a link, newest first, in sentences. */
export function linkHistory(changes: readonly Change[], most: number): Html {
  return html`<section id="history" aria-labelledby="history-title">
    <h2 id="history-title">History</h2>
    ${changeList(changes)}
    ${changes.length === most && html`<p class="muted">These are the latest ${most} changes.</p>`}
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
  const of = (name: string): Before => ({ before: detail[name]?.[0], after: detail[name]?.[1] })
  switch (action) {
    case 'created':
      return html`made the link to ${value(of('url').after)}`
    case 'owner added':
      return html`made ${value(of('owner').after)} a co-owner`
    case 'owner removed':
      return html`ended the co-ownership of ${value(of('owner').before)}`
    case 'shared':
      return html`shared the link with ${value(of('share').after)}`
    case 'share ended':
      return html`ended the share with ${value(of('share').before)}`
    case 'edited': {
      const parts = Object.keys(detail).map((name) => edit(name, of(name)))
      return parts.length === 0 ? 'saved the link as it was' : joined(parts)
    }
    default:
      // An action of a later version, perhaps: its own words are better than none.
      return action
  }
}

interface Before {
  readonly before: unknown
  readonly after: unknown
}

function edit(name: string, { before, after }: Before): Html {
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

/** Who has a link, and what was done to it. */
export interface MembersView {
  readonly id: string
  readonly slug: string
  readonly owners: readonly Owner[]
  readonly shares: readonly Share[]
  readonly changes: readonly Change[]
  /** The most changes that are listed. */
  readonly mostChanges: number
  readonly mayChange: boolean
  /** What the last form was refused for, with what was typed into it. */
  readonly refused: {
    readonly form: MemberKind
    readonly email: string
    readonly message: string
  } | null
  /** What the last form did. */
  readonly said: string | null
}

export type MemberKind = 'owners' | 'shares'

/** The part of a link's page that forms for owners and shares are answered with. */
export function linkMembers(view: MembersView): Html {
  const { owners, shares, said } = view
  return html`<div id="members">
    <p class="${said !== null && 'saved'}" role="status">${said}</p>
    <div class="cards">
      <section class="panel" aria-labelledby="owners-title">
        <h2 id="owners-title">Owners</h2>
        <ul class="members">
          ${owners.map(
            ({ id, email, is_primary }) =>
              html`<li>
                <bdi>${email}</bdi>
                ${
                  is_primary
                    ? html`<span class="badge">primary</span>`
                    : remove(view, 'owners', { id, email })
                }
              </li>`,
          )}
        </ul>
        ${addForm(view, 'owners', 'Add a co-owner', 'Add co-owner')}
      </section>
      <section class="panel" aria-labelledby="shares-title">
        <h2 id="shares-title">Shared with</h2>
        ${shares.length === 0 && html`<p class="muted">Nobody beside its owners.</p>`}
        <ul class="members">
          ${shares.map(
            ({ id, email, shared_by, created_at }) =>
              html`<li>
                <span>
                  <bdi>${email}</bdi>
                  <span class="detail">by <bdi>${shared_by}</bdi>, ${timeTag(created_at)}</span>
                </span>
                ${remove(view, 'shares', { id, email })}
              </li>`,
          )}
        </ul>
        ${addForm(view, 'shares', 'Share with', 'Share')}
      </section>
    </div>
    ${linkHistory(view.changes, view.mostChanges)}
  </div>`
}

function remove(
  { id: link, mayChange }: MembersView,
  kind: MemberKind,
  { id, email }: Pick<Owner, 'id' | 'email'>,
): Html | false {
  const action = `/-/links/${link}/${kind}/${id}/remove`
  return (
    mayChange &&
    html`<form
      method="post"
      action="${action}"
      hx-post="${action}"
      hx-target="#members"
      hx-swap="outerHTML"
    >
      <button type="submit">
        ${kind === 'owners' ? 'Remove' : 'End'}
        <span class="hidden">${kind === 'owners' ? 'co-owner' : 'the share with'} ${email}</span>
      </button>
    </form>`
  )
}

function addForm(view: MembersView, kind: MemberKind, label: string, button: string): Html | false {
  const { id, mayChange, refused } = view
  const action = `/-/links/${id}/${kind}`
  const bad = refused?.form === kind ? refused : null
  return (
    mayChange &&
    html`<form
      class="inline"
      method="post"
      action="${action}"
      hx-post="${action}"
      hx-target="#members"
      hx-swap="outerHTML"
    >
      <label for="${kind}-email">${label}</label>
      <div class="actions">
        <input
          id="${kind}-email"
          name="email"
          type="email"
          value="${bad?.email}"
          required
          placeholder="name@example.com"
          autocomplete="off"
          ${bad !== null && html`aria-invalid="true" aria-describedby="${kind}-refused" autofocus`}
        />
        <button type="submit" id="${kind}-add">${button}</button>
      </div>
      ${bad !== null && html`<p id="${kind}-refused" class="refused">${bad.message}</p>`}
    </form>`
  )
}
