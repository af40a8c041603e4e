import type { Token } from '../../db/links/tokens.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { field, postForm, radios, refusal, select, submit } from '../form.ts'
import { cards, copyBox, disclosed, fact, secretBox, timeTag } from '../parts.ts'
import { linksPage, type Viewer } from './layout.ts'

/** What `/-/tokens` shows. */
export interface TokensView {
  /** The viewer's own, newest first. */
  readonly tokens: readonly Token[]
  readonly now: Date
  readonly form: FormState
  /** A token that was just created, with a command that uses it. */
  readonly created?: { readonly name: string; readonly token: string; readonly curl: string }
}

/** What a token may do, for people. */
const SCOPES = [
  ['full', 'Everything', 'what you may do yourself, tokens included'],
  ['read', 'Read', 'only read'],
  ['create', 'Create', 'only create links'],
] as const

/** How long a token is valid: what `expires` says, for people. */
const LIFETIMES = [
  ['7d', 'in 7 days'],
  ['30d', 'in 30 days'],
  ['90d', 'in 90 days'],
  ['365d', 'in a year'],
  ['', 'never'],
] as const

export function tokensPage(viewer: Viewer, view: TokensView): Html {
  const body = html`<h1>Tokens</h1>
    <p class="muted">
      With a token, a program of yours uses the API in your name. Treat it like a password.
    </p>
    ${tokensFragment(view)}`
  return linksPage(viewer, { title: 'Tokens', section: 'tokens', body })
}

/** The list with its form, and the reply to its forms. */
export function tokensFragment({ tokens, created, now, form }: TokensView): Html {
  const list = tokens.map((token) => tokenCard(token, now))
  return html`<section id="tokens" aria-label="Your tokens">
    ${created !== undefined && createdBox(created)} ${cards(list, 'You have no tokens yet.')}
    ${createForm(form)}
  </section>`
}

function createdBox({ name, token, curl }: NonNullable<TokensView['created']>): Html {
  const tryIt = html`<p>Try it:</p>
    ${copyBox('made-curl', 'curl command', curl)}`
  return secretBox(html`Token <bdi>${name}</bdi>`, { what: 'token', secret: token }, tryIt)
}

function tokenCard(
  { id, name, scope, created_at, expires_at, last_used_at }: Token,
  now: Date,
): Html {
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
      ${fact('Created', timeTag(created_at))}
    </dl>
    ${disclosed('Revoke…', revokeForm(id, name))}
  </article>`
}

function revokeForm(id: string, name: string): Html {
  const effect = 'Programs that use it are refused from then on.'
  const confirm = `Revoke ${name}? ${effect}`
  return postForm(
    { action: `/-/tokens/${id}/revoke`, target: '#tokens', confirm },
    html`<p>${effect}</p>
      ${submit(html`Revoke <span class="hidden">${name}</span>`, { class: 'danger' })}`,
  )
}

function createForm(state: FormState): Html {
  const form = { id: 'token', ...state }
  return postForm(
    { id: 'create-token', class: 'panel stack', action: '/-/tokens', target: '#tokens' },
    html`${refusal(form)}
      <h2>New token</h2>
      ${field(form, 'name', 'Name', { placeholder: 'what it is for' })}
      ${radios(form, 'scope', 'May do', SCOPES)} ${select(form, 'expires', 'Expires', LIFETIMES)}
      <p class="field">
        ${submit('Create token', { class: 'primary', id: 'create-token-button' })}
      </p>`,
  )
}
