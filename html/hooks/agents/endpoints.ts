import type { Endpoint } from '../../../db/hooks/agents/endpoints.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState } from '../../../kernel/http/view.ts'
import { checkbox, field, NAME, postForm, refusal, removalForm, submit } from '../../form.ts'
import { cards, copyBox, disclosed, facts, secretBox, section, timeTag } from '../../parts.ts'

interface Made {
  name: string
  token: string
  /** JSON to paste into a client. */
  configuration: string
}

/** What the settings page shows of the tool protocol. */
export interface EndpointsView {
  endpoints: readonly Endpoint[]
  baseUrl: string
  /** An endpoint that was just created; its token is shown this one time. */
  made?: Made
  /** The form that creates one. */
  newEndpoint: FormState
}

/** The tool protocol's part of `/settings`, and the answer to its forms. */
export function endpointsFragment(view: EndpointsView): Html {
  const { endpoints, baseUrl, made, newEndpoint } = view
  const content = html`<p class="muted">
      Assistants and other programs that speak MCP read the webhooks here, each at an endpoint
      <code>${baseUrl}/mcp/<em>name</em></code> with a token of its own. The
      <a href="/api/docs/">API</a> takes the same token.
    </p>
    ${made !== undefined && madeBox(made, baseUrl)}
    ${cards(endpoints.map(endpointCard), 'No endpoints yet.')} ${createForm(newEndpoint)}`
  return section('endpoints-title', 'Tool protocol', content, { id: 'endpoints' })
}

function madeBox({ name, token, configuration }: Made, baseUrl: string): Html {
  return secretBox(
    `Token of ${name}`,
    { what: 'token', secret: token, id: 'endpoint-token' },
    html`<p>
        Clients that read <code>mcpServers</code> take this configuration. Others need the URL
        <code>${baseUrl}/mcp/${name}</code> and the token as a bearer token.
      </p>
      ${copyBox('endpoint-configuration', 'client configuration', configuration)}`,
  )
}

const REVOKED = 'Its token stops working at once.'

function endpointCard({ name, may_replay, created_at, last_used_at }: Endpoint): Html {
  const form = { action: `/settings/endpoints/${name}/revoke`, target: '#endpoints' }
  return html`<article class="panel card" id="card-of-${name}" aria-labelledby="name-of-${name}">
    <h3 id="name-of-${name}">${name}</h3>
    ${facts({
      May: may_replay ? 'read and replay' : 'read',
      'Last used': last_used_at === null ? 'never' : timeTag(last_used_at),
      Created: timeTag(created_at),
    })}
    ${disclosed('Revoke…', removalForm('Revoke', name, REVOKED, form))}
  </article>`
}

function createForm(state: FormState): Html {
  const form = { id: 'endpoint', ...state }
  const action = '/settings/endpoints'
  const replay = html`<strong>Allow replay</strong> – programs may have events sent again`
  return postForm(
    { id: 'create-endpoint', class: 'panel stack', action, target: '#endpoints' },
    html`${refusal(form)}
      <h3>New endpoint</h3>
      ${field(form, 'name', 'Name', NAME)}
      <fieldset>
        <legend>Rights beyond reading</legend>
        ${checkbox(form, 'allow_replay', replay)}
      </fieldset>
      <p class="field">${submit('Create endpoint', { id: 'create-endpoint-button' })}</p>`,
  )
}
