import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { checkbox, field, postForm, radios, refusal, submit } from '../form.ts'
import { cards, copyBox, secretBox } from '../parts.ts'
import { hooksPage } from './layout.ts'
import { providerCard, secretField, type ProviderCard } from './provider-card.ts'

/** What `/providers` shows. */
export interface ProvidersView {
  readonly cards: readonly ProviderCard[]
  readonly baseUrl: string
  /** What was just created or rotated; a token or secret is shown this one time. */
  readonly made?: {
    readonly name: string
    readonly trust_mode: 'token' | 'signed' | 'open'
    readonly token: string | null
    readonly url: string
    /** False for one that was created. */
    readonly rotated: boolean
  }
  /** True when signing secrets can be stored. */
  readonly canSign: boolean
  /** The form that creates one. */
  readonly form: FormState
}

/** `/providers`: who may send, and the form that creates a provider. */
export function providersPage(view: ProvidersView): Html {
  return hooksPage({
    title: 'Providers',
    section: 'providers',
    body: html`<h1>Providers</h1>
      ${providersFragment(view)}`,
  })
}

/** The page's content, and the answer to its forms: a new secret, the cards, the form. */
export function providersFragment({ made, cards: all, ...view }: ProvidersView): Html {
  return html`<div id="providers">
    ${made !== undefined && madeBox(made)} ${cards(all.map(providerCard), 'No providers yet.')}
    ${createForm(view)}
  </div>`
}

function createForm({ form: state, baseUrl, canSign }: Omit<ProvidersView, 'cards'>): Html {
  const form = { id: 'create', ...state }
  const needsKey = !canSign && html`; needs <code>GATEHOUSE_SECRET_KEY</code>`
  const signed = html`the sender signs each delivery (Standard Webhooks)${needsKey}`
  const trust = radios(
    form,
    'trust_mode',
    'Trust',
    [
      ['token', 'Token', 'the sender proves itself with a secret made for it'],
      ['signed', 'Signed', signed, { disabled: !canSign }],
      ['open', 'Open', 'nothing is checked; for trusted networks only'],
    ],
    html`${canSign && secretField('create-secret')}
    ${checkbox(
      form,
      'acknowledge_open',
      "I know that anybody who reaches an open provider's URL can send to it",
      { labelClass: 'choice acknowledge' },
    )}`,
  )
  return html`<section class="panel" aria-labelledby="create-title">
    <h2 id="create-title">Add a generic provider</h2>
    <p class="muted">
      For any sender that can post to a URL. It gets
      <code>${baseUrl}/webhooks/generic/<em>name</em></code> and starts disabled.
    </p>
    ${postForm(
      { id: 'create-provider', class: 'stack', action: '/providers', target: '#providers' },
      html`${refusal(form)} ${field(form, 'name', 'Name', NAME)} ${trust}
        <p>${submit('Add provider', { class: 'primary', id: 'create-button' })}</p>`,
    )}
  </section>`
}

/** The form of a name that becomes part of an address. */
const NAME = {
  required: true,
  maxlength: 64,
  pattern: '[a-z0-9][a-z0-9_\\-]{0,63}',
  title: 'Lower-case letters, digits, - and _; a letter or digit first',
  autocapitalize: 'off',
  spellcheck: 'false',
}

type Made = NonNullable<ProvidersView['made']>

/** Shown this one time. */
function madeBox(made: Made): Html {
  const { name, token, rotated, trust_mode } = made
  const done = rotated ? `${name} has its new secret` : `${name} was created`
  const signed = trust_mode === 'signed'
  return secretBox(
    token === null ? done : `Secret of ${name}`,
    { what: signed ? 'secret' : 'token', secret: token, id: 'made-token' },
    html`<p>
        Send to this URL.${!rotated && ' The provider is disabled until you switch it on below.'}
      </p>
      ${copyBox('made-curl', 'curl command', signed ? signedCurl(made) : curl(made))}`,
  )
}

function curl({ url, token }: Made): string {
  const authorization = token === null ? '' : `  -H 'Authorization: Bearer ${token}' \\\n`
  return (
    `curl -X POST '${url}' \\\n${authorization}` +
    `  -H 'Content-Type: application/json' \\\n  -d '{"hello": "world"}'`
  )
}

/** Signs in a shell what a sender's library signs. */
function signedCurl({ url, token }: Made): string {
  return `SECRET='${token ?? 'whsec_…'}'
BODY='{"hello": "world"}'; ID=msg_$(openssl rand -hex 12); TIME=$(date +%s)
KEY=$(printf %s "\${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "$ID.$TIME.$BODY" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$KEY -binary | openssl base64 -A)
curl -X POST '${url}' \\
  -H "webhook-id: $ID" -H "webhook-timestamp: $TIME" -H "webhook-signature: v1,$SIGNATURE" \\
  -H 'Content-Type: application/json' --data-raw "$BODY"`
}
