import type { Endpoint } from '../../db/hooks/endpoints.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { checkbox, field, postForm, refusal, submit } from '../form.ts'
import { cards, copyBox, disclosed, fact, secretBox, timeTag } from '../parts.ts'

/** What the settings page shows of the tool protocol. */
export interface EndpointsView {
  readonly endpoints: readonly Endpoint[]
  readonly baseUrl: string
  /** An endpoint that was just created; its token is shown this one time. */
  readonly created?: {
    readonly name: string
    readonly token: string
    readonly url: string
    /** JSON to paste into a client. */
    readonly configuration: string
  }
  readonly form: FormState
}

/** The tool protocol's part of `/settings`, and the answer to its forms. */
export function endpointsFragment({ endpoints, baseUrl, created, form }: EndpointsView): Html {
  return html`<section id="endpoints" aria-labelledby="endpoints-title">
    <h2 id="endpoints-title">Tool protocol</h2>
    <p class="muted">
      Assistants and other programs that speak MCP read the webhooks here, each at an endpoint
      <code>${baseUrl}/mcp/<em>name</em></code> with a token of its own.
    </p>
    ${created !== undefined && createdBox(created)}
    ${cards(endpoints.map(endpointCard), 'No endpoints yet.')} ${createForm(form)}
  </section>`
}

function createdBox({
  name,
  token,
  url,
  configuration,
}: NonNullable<EndpointsView['created']>): Html {
  return secretBox(
    `Token of ${name}`,
    { what: 'token', secret: token, id: 'endpoint-token' },
    html`<p>
        Clients that read <code>mcpServers</code> take this configuration. Others need the URL
        <code>${url}</code> and the token as a bearer token.
      </p>
      ${copyBox('endpoint-configuration', 'client configuration', configuration)}`,
  )
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

function createForm(state: FormState): Html {
  const form = { id: 'endpoint', ...state }
  const action = '/settings/endpoints'
  return postForm(
    { id: 'create-endpoint', class: 'panel stack', action, target: '#endpoints' },
    html`${refusal(form)}
      <h3>New endpoint</h3>
      ${field(form, 'name', 'Name', {
        maxlength: 64,
        pattern: '[a-z0-9][a-z0-9_\\-]{0,63}',
        title: 'Lower-case letters, digits, - and _; a letter or digit first',
        ...{ autocapitalize: 'off', spellcheck: 'false' },
      })}
      <fieldset>
        <legend>Rights beyond reading</legend>
        ${checkbox(
          form,
          'allow_replay',
          html`<strong>Allow replay</strong> – programs may have events sent again`,
        )}
      </fieldset>
      <p>${submit('Create endpoint', { id: 'create-endpoint-button' })}</p>`,
  )
}
