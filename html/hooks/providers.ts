import { html, type Html } from '../../kernel/html.ts'
import { hooksPage } from './layout.ts'
import { nameField } from './name-field.ts'
import { providerCard, secretField } from './provider-card.ts'
import type { ProvidersView } from './views.ts'
import { copyBox } from '../parts.ts'

/** `/providers`: who may send, and the form that creates a sender. */
export function providersPage(view: ProvidersView): Html {
  return hooksPage({
    title: 'Providers',
    section: 'providers',
    body: html`<h1>Providers</h1>
      ${providersFragment(view)}`,
  })
}

/** The page's content, and the answer to its forms: a secret that was just made, the cards, the form. */
export function providersFragment(view: ProvidersView): Html {
  return html`<div id="providers">
    ${view.made !== null && madeBox(view.made)}
    ${
      view.cards.length === 0
        ? html`<p class="panel empty">No provider is known yet.</p>`
        : html`<div class="cards">${view.cards.map(providerCard)}</div>`
    }
    ${createForm(view)}
  </div>`
}

function createForm({ refused, baseUrl, canSign }: ProvidersView): Html {
  return html`<section class="panel" aria-labelledby="create-title">
    <h2 id="create-title">Add a generic provider</h2>
    <p class="muted">
      For any sender that can post to a URL. It gets
      <code>${baseUrl}/webhooks/generic/<em>name</em></code> and starts disabled.
    </p>
    <form
      id="create-provider"
      class="stack"
      method="post"
      action="/providers"
      hx-post="/providers"
      hx-target="#providers"
      hx-swap="outerHTML"
    >
      ${refused !== null && html`<p id="create-refused" class="refused">${refused.message}</p>`}
      ${nameField({ id: 'create-name', refused, messageId: 'create-refused' })}
      <fieldset>
        <legend>Trust</legend>
        <label class="choice">
          <input
            type="radio"
            name="trust_mode"
            value="token"
            ${(refused === null || refused.trust_mode === 'token') && html`checked`}
          />
          <span><strong>Token</strong> – the sender proves itself with a secret made for it</span>
        </label>
        <label class="choice">
          <input
            type="radio"
            name="trust_mode"
            value="signed"
            ${refused?.trust_mode === 'signed' && html`checked`}
            ${!canSign && html`disabled`}
          />
          <span
            ><strong>Signed</strong> – the sender signs each delivery (Standard Webhooks)
            ${!canSign && html`; needs <code>GATEHOUSE_SECRET_KEY</code>`}</span
          >
        </label>
        ${canSign && secretField('create-secret')}
        <label class="choice">
          <input
            type="radio"
            name="trust_mode"
            value="open"
            ${refused?.trust_mode === 'open' && html`checked`}
          />
          <span><strong>Open</strong> – nothing is checked; for trusted networks only</span>
        </label>
        <label class="choice acknowledge">
          <input type="checkbox" name="acknowledge_open" value="true" />
          <span>I know that anybody who reaches an open provider's URL can send to it</span>
        </label>
      </fieldset>
      <p><button type="submit" class="primary" id="create-button">Add provider</button></p>
    </form>
  </section>`
}

type Made = NonNullable<ProvidersView['made']>

/** Shown this one time: the focus goes to it, so that neither eye nor screen reader misses it. */
export function madeBox(made: Made): Html {
  const { name, token, rotated } = made
  const done = rotated ? html`${name} has its new secret` : html`${name} was created`
  return html`<section
    id="made"
    class="panel made"
    tabindex="-1"
    autofocus
    aria-labelledby="made-title"
  >
    <h2 id="made-title">${token === null ? done : html`Secret of ${name}`}</h2>
    ${
      token !== null &&
      html`<p>
          <strong>Copy it now: it is shown only this once.</strong>
        </p>
        ${copyBox('made-token', made.trust_mode === 'signed' ? 'secret' : 'token', token)}`
    }
    <p>Send to this URL.${!rotated && ' The provider is disabled until you switch it on below.'}</p>
    ${copyBox('made-curl', 'curl command', made.trust_mode === 'signed' ? signedCurl(made) : curl(made))}
  </section>`
}

function curl({ url, token }: Made): string {
  const authorization = token === null ? '' : `  -H 'Authorization: Bearer ${token}' \\\n`
  return (
    `curl -X POST '${url}' \\\n${authorization}` +
    `  -H 'Content-Type: application/json' \\\n  -d '{"hello": "world"}'`
  )
}

/** What a sender's library does, in a shell. */
function signedCurl({ url, token }: Made): string {
  return `SECRET='${token ?? 'whsec_…'}'
BODY='{"hello": "world"}'; ID=msg_$(openssl rand -hex 12); TIME=$(date +%s)
KEY=$(printf %s "\${SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \\n')
SIGNATURE=$(printf %s "$ID.$TIME.$BODY" | openssl dgst -sha256 -mac HMAC -macopt hexkey:$KEY -binary | openssl base64 -A)
curl -X POST '${url}' \\
  -H "webhook-id: $ID" -H "webhook-timestamp: $TIME" -H "webhook-signature: v1,$SIGNATURE" \\
  -H 'Content-Type: application/json' --data-raw "$BODY"`
}
