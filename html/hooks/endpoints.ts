import type { Endpoint } from '../../db/hooks/endpoints.ts'
import { html, type Html } from '../../kernel/html.ts'
import { copyBox, fact } from '../parts.ts'
import { timeTag } from '../text.ts'
import { nameField } from './name-field.ts'

/** What the settings page shows of the tool protocol. */
export interface EndpointsView {
  readonly endpoints: readonly Endpoint[]
  readonly baseUrl: string
  /** An endpoint that was just made, with its token, shown this one time. */
  readonly made: {
    readonly name: string
    readonly token: string
    readonly url: string
    /** JSON to paste into a client. */
    readonly configuration: string
  } | null
  /** Why the last form was refused, with what was typed. */
  readonly refused: {
    readonly name: string
    readonly may_replay: boolean
    readonly message: string
  } | null
}

/** The tool protocol's part of `/settings`, and the answer to its forms. */
export function endpointsFragment(view: EndpointsView): Html {
  const { endpoints, baseUrl, made } = view
  return html`<section id="endpoints" aria-labelledby="endpoints-title">
    <h2 id="endpoints-title">Tool protocol</h2>
    <p class="muted">
      Assistants and other programs that speak MCP read the webhooks here, each at an endpoint
      <code>${baseUrl}/mcp/<em>name</em></code> with a token of its own.
    </p>
    ${made !== null && madeBox(made)}
    ${
      endpoints.length === 0
        ? html`<p class="panel empty">There is no endpoint yet.</p>`
        : html`<div class="cards">${endpoints.map(endpointCard)}</div>`
    }
    ${createForm(view)}
  </section>`
}

/** Shown this one time: the focus goes to it, so that neither eye nor screen reader misses it. */
function madeBox({ name, token, url, configuration }: NonNullable<EndpointsView['made']>): Html {
  return html`<section
    id="made-endpoint"
    class="panel made"
    tabindex="-1"
    autofocus
    aria-labelledby="made-endpoint-title"
  >
    <h3 id="made-endpoint-title">Token of ${name}</h3>
    <p><strong>Copy it now: it is shown only this once.</strong></p>
    ${copyBox('endpoint-token', 'token', token)}
    <p>
      A client that reads <code>mcpServers</code> takes this as it is; any other needs the URL
      <code>${url}</code> and the token as a bearer token.
    </p>
    ${copyBox('endpoint-configuration', 'client configuration', configuration)}
  </section>`
}

function endpointCard({ name, may_replay, created_at, last_used_at }: Endpoint): Html {
  return html`<article class="panel card" id="card-of-${name}" aria-labelledby="name-of-${name}">
    <h3 id="name-of-${name}">${name}</h3>
    <dl class="facts">
      ${fact('May', may_replay ? 'read and replay' : 'read')}
      ${fact('Last used', last_used_at === null ? 'never' : timeTag(last_used_at))}
      ${fact('Made', timeTag(created_at))}
    </dl>
    ${revoke(name)}
  </article>`
}

/** What one stray click must not do stands behind a disclosure. */
function revoke(name: string): Html {
  return html`<details class="changes">
    <summary>Revoke…</summary>
    <form
      method="post"
      action="/settings/endpoints/${name}/revoke"
      hx-post="/settings/endpoints/${name}/revoke"
      hx-target="#endpoints"
      hx-swap="outerHTML"
      hx-confirm="Revoke ${name}? Its token stops working at once."
    >
      <button type="submit" class="danger">Revoke <span class="hidden">${name}</span></button>
    </form>
  </details>`
}

function createForm({ refused }: EndpointsView): Html {
  return html`<form
    id="create-endpoint"
    class="panel stack"
    method="post"
    action="/settings/endpoints"
    hx-post="/settings/endpoints"
    hx-target="#endpoints"
    hx-swap="outerHTML"
  >
    ${
      refused !== null &&
      html`<p id="endpoint-refused" class="refused" role="alert">${refused.message}</p>`
    }
    <h3>Add an endpoint</h3>
    ${nameField({ id: 'endpoint-name', refused, messageId: 'endpoint-refused' })}
    <fieldset>
      <legend>Rights beyond reading</legend>
      <label class="choice">
        <input
          type="checkbox"
          name="allow_replay"
          value="true"
          ${refused?.may_replay === true && html`checked`}
        />
        <span><strong>Allow replay</strong> – it may have events sent out again</span>
      </label>
    </fieldset>
    <p><button type="submit" id="create-endpoint-button">Add endpoint</button></p>
  </form>`
}
