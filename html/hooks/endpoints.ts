import type { Endpoint } from '../../db/hooks/endpoints.ts'
import { html, type Html } from '../../kernel/html.ts'
import { attributes, cards, copyBox, disclosed, fact, timeTag } from '../parts.ts'
import { postForm, submit } from '../form.ts'

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
    ${made !== null && madeBox(made)} ${cards(endpoints.map(endpointCard), 'No endpoints yet.')}
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
      ${fact('Created', timeTag(created_at))}
    </dl>
    ${disclosed('Revoke…', revokeForm(name))}
  </article>`
}

function revokeForm(name: string): Html {
  const action = `/settings/endpoints/${name}/revoke`
  const confirm = `Revoke ${name}? Its token stops working at once.`
  return postForm(
    { action, target: '#endpoints', confirm },
    submit(html`Revoke <span class="hidden">${name}</span>`, { class: 'danger' }),
  )
}

function createForm({ refused }: EndpointsView): Html {
  return postForm(
    {
      id: 'create-endpoint',
      class: 'panel stack',
      action: '/settings/endpoints',
      target: '#endpoints',
    },
    html`${
        refused !== null &&
        html`<p id="endpoint-refused" class="refused" role="alert">${refused.message}</p>`
      }
      <h3>New endpoint</h3>
      ${nameField(refused)}
      <fieldset>
        <legend>Rights beyond reading</legend>
        <label class="choice">
          <input${attributes({
            type: 'checkbox',
            name: 'allow_replay',
            value: 'true',
            checked: refused?.may_replay === true,
          })} />
          <span><strong>Allow replay</strong> – programs may have events sent again</span>
        </label>
      </fieldset>
      <p>${submit('Create endpoint', { id: 'create-endpoint-button' })}</p>`,
  )
}

/** The focus goes to the name after a refusal. */
function nameField(refused: EndpointsView['refused']): Html {
  const again = {
    'aria-invalid': 'true',
    'aria-describedby': 'endpoint-refused',
    autofocus: true,
  }
  const name = {
    ...{ name: 'name', id: 'endpoint-name', value: refused?.name, required: true, maxlength: 64 },
    pattern: '[a-z0-9][a-z0-9_\\-]{0,63}',
    title: 'Lower-case letters, digits, - and _; a letter or digit first',
    ...{ autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' },
    ...(refused !== null && again),
  }
  return html`<label>Name <input${attributes(name)} /></label>`
}
