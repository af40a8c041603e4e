import type { Assistant } from '../../../db/ops/assistants/assistants.ts'
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

/** What `/config` shows of people's own assistants. */
export interface AssistantsView {
  assistants: readonly Assistant[]
  baseUrl: string
  /** An assistant that was just added; its token is shown this one time. */
  made?: Made
  /** The form that adds one. */
  newAssistant: FormState
}

const REVOKED = 'Its token stops working at once.'

/** The assistants' part of `/config`, and the answer to its forms. */
export function assistantsFragment(view: AssistantsView): Html {
  const { assistants, baseUrl, made, newAssistant } = view
  const content = html`<p class="muted">
      An assistant that speaks MCP reads states, sessions, events, alerts and memories at
      <code>${baseUrl}/mcp/ops</code>, with a token of its own.
    </p>
    ${made !== undefined && madeBox(made, baseUrl)}
    ${cards(assistants.map(assistantCard), 'No assistants yet.')} ${addForm(newAssistant)}`
  return section('assistants-title', 'Assistants', content, { id: 'assistants' })
}

function madeBox({ name, token, configuration }: Made, baseUrl: string): Html {
  return secretBox(
    `Token of ${name}`,
    { what: 'token', secret: token, id: 'assistant-token' },
    html`<p>
        Clients that read <code>mcpServers</code> take this configuration. Others need the URL
        <code>${baseUrl}/mcp/ops</code> and the token as a bearer token.
      </p>
      ${copyBox('assistant-configuration', 'client configuration', configuration)}`,
  )
}

function assistantCard({ name, may_start, created_at, last_used_at }: Assistant): Html {
  const form = { action: `/config/assistants/${name}/revoke`, target: '#assistants' }
  return html`<article class="panel card" id="card-of-${name}" aria-labelledby="name-of-${name}">
    <h3 id="name-of-${name}">${name}</h3>
    ${facts({
      May: may_start ? 'read and start sessions' : 'read',
      'Last used': last_used_at === null ? 'never' : timeTag(last_used_at),
      Added: timeTag(created_at),
    })}
    ${disclosed('Revoke…', removalForm('Revoke', name, REVOKED, form))}
  </article>`
}

function addForm(state: FormState): Html {
  const form = { id: 'assistant', ...state }
  const start = html`<strong>Start sessions</strong> – of tier 1, one at a time as always`
  return postForm(
    {
      id: 'add-assistant',
      class: 'panel stack',
      action: '/config/assistants',
      target: '#assistants',
    },
    html`${refusal(form)}
      <h3>New assistant</h3>
      ${field(form, 'name', 'Name', NAME)}
      <fieldset>
        <legend>Rights beyond reading</legend>
        ${checkbox(form, 'allow_start', start)}
      </fieldset>
      <p class="field">${submit('Add assistant', { id: 'add-assistant-button' })}</p>`,
  )
}
