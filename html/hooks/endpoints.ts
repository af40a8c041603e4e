import type { Endpoint } from '../../db/hooks/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { copyBox } from '../copy-box.ts'
import { timeTag } from '../time.ts'

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
  return html`<section id="endpoints" class="panel stack" aria-labelledby="endpoints-title">
    <h2 id="endpoints-title">Tool protocol</h2>
    <p class="muted">
      Assistants and other programs that speak MCP read the webhooks here, each at an endpoint
      <code>${baseUrl}/mcp/<em>name</em></code> with a token of its own.
    </p>
    ${made !== null && madeBox(made)}
    ${
      endpoints.length === 0
        ? html`<p class="empty">There is no endpoint yet.</p>`
        : endpointTable(endpoints)
    }
    ${createForm(view)}
  </section>`
}

/** Shown this one time: the focus goes to it, so that neither eye nor screen reader misses it. */
function madeBox({ name, token, url, configuration }: NonNullable<EndpointsView['made']>): Html {
  return html`<section
    id="made-endpoint"
    class="made"
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

function endpointTable(endpoints: readonly Endpoint[]): Html {
  return html`<table class="pairs">
    <caption class="hidden">
      Endpoints
    </caption>
    <thead>
      <tr>
        <th scope="col">Name</th>
        <th scope="col">May</th>
        <th scope="col">Last used</th>
        <th scope="col">Change</th>
      </tr>
    </thead>
    <tbody>
      ${endpoints.map(
        ({ name, may_replay, last_used_at }) =>
          html`<tr>
            <th scope="row">${name}</th>
            <td>${may_replay ? 'read, replay' : 'read'}</td>
            <td>${last_used_at === null ? 'never' : timeTag(last_used_at)}</td>
            <td>${revoke(name)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`
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
    class="stack"
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
    <label>
      Name of a new endpoint
      <input
        name="name"
        id="endpoint-name"
        value="${refused?.name}"
        required
        maxlength="64"
        pattern="[a-z0-9][a-z0-9_\\-]{0,63}"
        title="Lower-case letters, digits, - and _; a letter or digit first"
        autocomplete="off"
        autocapitalize="off"
        spellcheck="false"
        ${refused !== null && html`aria-invalid="true" aria-describedby="endpoint-refused" autofocus`}
      />
    </label>
    <label class="choice">
      <input
        type="checkbox"
        name="allow_replay"
        value="true"
        ${refused?.may_replay === true && html`checked`}
      />
      <span><strong>Allow replay</strong> – it may have events sent out again</span>
    </label>
    <p><button type="submit" id="create-endpoint-button">Add endpoint</button></p>
  </form>`
}
