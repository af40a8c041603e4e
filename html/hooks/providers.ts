import { html, type Html } from '../../kernel/html.ts'
import { hooksPage } from './layout.ts'
import { madeBox } from './made-box.ts'
import { nameField } from './name-field.ts'
import { providerCard } from './provider-card.ts'
import { secretField } from './provider-forms.ts'
import type { ProvidersView } from './views.ts'

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
