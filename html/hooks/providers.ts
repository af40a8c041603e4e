import { html, type Html } from '../../kernel/html.ts'
import { copyBox } from '../copy-box.ts'
import { layout } from '../layout.ts'
import { providerCard as card } from './provider-card.ts'
import type { ProvidersView } from './views.ts'

/** `/providers`: who may send, and the form that creates a sender. */
export function providersPage(view: ProvidersView): Html {
  return layout({
    title: 'Providers',
    section: 'providers',
    body: html`<h1>Providers</h1>
      ${createdFragment(view)}`,
  })
}

/** The answer to creating, rotating and removing: the token where one was made, the cards, the form. */
export function createdFragment(view: ProvidersView): Html {
  return html`<div id="providers">
    ${view.made !== null && madeBox(view.made)}
    ${
      view.cards.length === 0
        ? html`<p class="panel empty">No provider is known yet.</p>`
        : html`<div class="cards">${view.cards.map(card)}</div>`
    }
    ${createForm(view)}
  </div>`
}

/** Shown this one time: the focus goes to it, so that neither eye nor screen reader misses it. */
function madeBox({ name, token, url }: NonNullable<ProvidersView['made']>): Html {
  return html`<section
    id="made"
    class="panel made"
    tabindex="-1"
    autofocus
    aria-labelledby="made-title"
  >
    <h2 id="made-title">${token === null ? html`${name} was created` : html`Secret of ${name}`}</h2>
    ${
      token !== null &&
      html`<p>
          <strong>Copy it now: it is shown only this once.</strong>
        </p>
        ${copyBox('made-token', 'token', token)}`
    }
    <p>
      Send to this URL. A provider that was just created is disabled until you switch it on below.
    </p>
    ${copyBox('made-curl', 'curl command', curl(url, token))}
  </section>`
}

function curl(url: string, token: string | null): string {
  const authorization = token === null ? '' : `  -H 'Authorization: Bearer ${token}' \\\n`
  return (
    `curl -X POST '${url}' \\\n${authorization}` +
    `  -H 'Content-Type: application/json' \\\n  -d '{"hello": "world"}'`
  )
}

function createForm({ refused, baseUrl }: ProvidersView): Html {
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
      <label>
        Name
        <input
          name="name"
          id="create-name"
          value="${refused?.name}"
          required
          maxlength="64"
          pattern="[a-z0-9][a-z0-9_\\-]{0,63}"
          title="Lower-case letters, digits, - and _; a letter or digit first"
          autocomplete="off"
          autocapitalize="off"
          spellcheck="false"
          ${refused !== null && html`aria-invalid="true" aria-describedby="create-refused" autofocus`}
        />
      </label>
      <fieldset>
        <legend>Trust</legend>
        <label class="choice">
          <input
            type="radio"
            name="trust_mode"
            value="token"
            ${refused?.trust_mode !== 'open' && html`checked`}
          />
          <span><strong>Token</strong> – the sender proves itself with a secret made for it</span>
        </label>
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
