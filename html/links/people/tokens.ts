import type { Token } from '../../../db/links/people/tokens.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import {
  field,
  hiddenField,
  postForm,
  radios,
  refusal,
  removalForm,
  select,
  submitLine,
} from '../../form.ts'
import { contentView } from '../../layout.ts'
import {
  cards,
  copyBox,
  countLine,
  countText,
  disclosed,
  facts,
  secretBox,
  timeTag,
} from '../../parts.ts'

/** A new token, with a command that uses it and JSON to paste into a client of MCP. */
type Created = Readonly<Record<'name' | 'token' | 'curl' | 'configuration', string>>

/** What `/-/tokens` shows. */
export interface TokensView {
  /** The viewer's own, newest first. */
  tokens: readonly Token[]
  /** The newest one's id, which the form sends back. */
  newest: string
  now: Date
  form: FormState
  /** A token that was just created. */
  created?: Created
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

export function tokensView({ tokens, newest, created, now, form }: TokensView): View {
  const above = html`<h1>Tokens</h1>
    <p class="muted">
      With a token, a program or an assistant of yours uses the API in your name. Treat it like a
      password. <a href="/-/help#help-assistants">Assistants</a> find and create links with one.
    </p>`
  const list = tokens.map((token) => tokenCard(token, now))
  const content = html`<section id="tokens" aria-label="Your tokens">
    ${created && createdBox(created)}
    ${tokens.length > 0 && countLine(countText(tokens.length, 'token'))}
    ${cards(list, 'You have no tokens yet.')} ${createForm(form, newest)}
  </section>`
  return contentView({ title: 'Tokens', section: 'tokens', above }, content)
}

function createdBox({ name, token, curl, configuration }: Created): Html {
  const tryIt = html`<p>Try it:</p>
    ${copyBox('made-curl', 'curl command', curl)}
    <p>An assistant that reads <code>mcpServers</code> takes this configuration:</p>
    ${copyBox('made-configuration', 'client configuration', configuration)}`
  return secretBox(html`Token <bdi>${name}</bdi>`, { what: 'token', secret: token }, tryIt)
}

const REVOKED = 'Programs that use it are refused from then on.'

function tokenCard(token: Token, now: Date): Html {
  const { id, name, expires_at: end, last_used_at: used } = token
  const form = { action: `/-/tokens/${id}/revoke`, target: '#tokens' }
  const expired = end !== null && end <= now
  return html`<article class="panel card" aria-labelledby="name-${id}">
    <h2 id="name-${id}">
      <bdi>${name}</bdi> ${expired && html`<span class="badge bad">expired</span>`}
    </h2>
    ${facts({
      Scope: SCOPES.find(([scope]) => scope === token.scope)?.[1],
      Expires: end === null ? 'never' : timeTag(end),
      'Last used': used === null ? 'never' : timeTag(used),
      Created: timeTag(token.created_at),
    })}
    ${disclosed('Revoke…', removalForm('Revoke', name, REVOKED, form))}
  </article>`
}

function createForm(state: FormState, newest: string): Html {
  const form = { id: 'token', ...state }
  return postForm(
    { id: 'create-token', class: 'panel stack', action: '/-/tokens', target: '#tokens' },
    html`${refusal(form)} ${hiddenField('newest', newest)}
      <h2>New token</h2>
      ${field(form, 'name', 'Name', { placeholder: 'what it is for' })}
      ${radios(form, 'scope', 'May do', SCOPES)} ${select(form, 'expires', 'Expires', LIFETIMES)}
      ${submitLine('Create token', 'create-token-button')}`,
  )
}
