import type { Token } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { copyBox, fact } from '../parts.ts'
import { timeTag } from '../text.ts'
import { linksPage, type Viewer } from './layout.ts'

/** What `/-/tokens` shows. */
export interface TokensView {
  /** The viewer's own, newest first. */
  readonly tokens: readonly Token[]
  readonly now: Date
  /** A token that was just made, shown this one time. */
  readonly made: {
    readonly name: string
    readonly token: string
    /** A command that uses it. */
    readonly curl: string
  } | null
  /** What was typed into the form that was refused, and why. */
  readonly refused:
    | (TokenForm & { readonly field: string | undefined; readonly message: string })
    | null
}

/** The fields of the form, as they were typed. */
export interface TokenForm {
  readonly name: string
  readonly scope: string
  readonly expires: string
}

/** What a token may do, for people. */
const SCOPES = [
  ['full', 'Everything', 'what you may do yourself, tokens included'],
  ['read', 'Read', 'only read'],
  ['create', 'Create', 'only make links'],
] as const

/** How long a token lives: what `expires` says, for people. */
const LIVES = [
  ['7d', 'in 7 days'],
  ['30d', 'in 30 days'],
  ['90d', 'in 90 days'],
  ['365d', 'in a year'],
  ['', 'never'],
] as const
const USUAL: TokenForm = { name: '', scope: 'full', expires: '90d' }

export function tokensPage(viewer: Viewer, view: TokensView): Html {
  const body = html`<h1>Tokens</h1>
    <p class="muted">
      With a token a program of yours uses the API in your name. Treat it like a password.
    </p>
    ${tokensFragment(view)}`
  return linksPage(viewer, { title: 'Tokens', section: 'tokens', body })
}

/** The list with its form, and the answer to its forms. */
export function tokensFragment(view: TokensView): Html {
  const { tokens, made, now } = view
  return html`<section id="tokens" aria-label="Your tokens">
    ${made !== null && madeBox(made)}
    ${
      tokens.length === 0
        ? html`<p class="panel empty">You have no token.</p>`
        : html`<div class="cards">${tokens.map((token) => tokenCard(token, now))}</div>`
    }
    ${createForm(view)}
  </section>`
}

/** Shown this one time: the focus goes to it, so that neither eye nor screen reader misses it. */
function madeBox({ name, token, curl }: NonNullable<TokensView['made']>): Html {
  return html`<section
    id="made"
    class="panel made"
    tabindex="-1"
    autofocus
    aria-labelledby="made-title"
  >
    <h2 id="made-title">Token <bdi>${name}</bdi></h2>
    <p><strong>Copy it now: it is shown only this once.</strong></p>
    ${copyBox('made-token', 'token', token)}
    <p>Try it:</p>
    ${copyBox('made-curl', 'curl command', curl)}
  </section>`
}

function tokenCard(token: Token, now: Date): Html {
  const { id, name, scope, created_at, expires_at, last_used_at } = token
  const expired = expires_at !== null && expires_at <= now
  return html`<article class="panel card" aria-labelledby="name-${id}">
    <div class="title-line">
      <h2 id="name-${id}">
        <bdi>${name}</bdi> ${expired && html`<span class="badge bad">expired</span>`}
      </h2>
    </div>
    <dl class="facts">
      ${fact('Scope', SCOPES.find(([value]) => value === scope)?.[1])}
      ${fact('Expires', expires_at === null ? 'never' : timeTag(expires_at))}
      ${fact('Last used', last_used_at === null ? 'never' : timeTag(last_used_at))}
      ${fact('Made', timeTag(created_at))}
    </dl>
    ${revoke(token)}
  </article>`
}

/** What one stray click must not do stands behind a disclosure. */
function revoke({ id, name }: Token): Html {
  const effect = 'What uses it is refused from then on.'
  return html`<details class="changes">
    <summary>Revoke…</summary>
    <form
      method="post"
      action="/-/tokens/${id}/revoke"
      hx-post="/-/tokens/${id}/revoke"
      hx-target="#tokens"
      hx-swap="outerHTML"
      hx-confirm="Revoke ${name}? ${effect}"
    >
      <p>${effect}</p>
      <button type="submit" class="danger">Revoke <span class="hidden">${name}</span></button>
    </form>
  </details>`
}

function createForm({ refused }: TokensView): Html {
  const { name, scope, expires } = refused ?? USUAL
  const wrong = (field: string): Html | false =>
    refused?.field === field && html`aria-invalid="true" aria-describedby="token-refused" autofocus`
  return html`<form
    id="create-token"
    class="panel stack"
    method="post"
    action="/-/tokens"
    hx-post="/-/tokens"
    hx-target="#tokens"
    hx-swap="outerHTML"
  >
    ${refused !== null && html`<p id="token-refused" class="refused" role="alert">${refused.message}</p>`}
    <h2>New token</h2>
    <label>
      Name
      <input
        name="name"
        id="token-name"
        value="${name}"
        required
        maxlength="100"
        placeholder="what it is for"
        autocomplete="off"
        ${wrong('name')}
      />
    </label>
    <fieldset ${wrong('scope')}>
      <legend>May do</legend>
      ${SCOPES.map(
        ([value, label, meaning]) =>
          html`<label class="choice">
            <input type="radio" name="scope" value="${value}" ${scope === value && html`checked`} />
            <span><strong>${label}</strong> – ${meaning}</span>
          </label>`,
      )}
    </fieldset>
    <label>
      Expires
      <select name="expires" id="token-expires" ${wrong('expires_at')}>
        ${LIVES.map(
          ([value, label]) =>
            html`<option value="${value}" ${expires === value && html`selected`}>${label}</option>`,
        )}
      </select>
    </label>
    <p class="field">
      <button type="submit" class="primary" id="create-token-button">Make token</button>
    </p>
  </form>`
}
