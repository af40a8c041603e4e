import type { Change, Owner, Share } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { timeTag } from '../time.ts'
import { linkHistory } from './link-history.ts'

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
