import type { Destination } from '../../../db/hooks/destinations.ts'
import { html, type Html } from '../../../kernel/html.ts'
import { checkbox, field, select, VERBATIM, type Form, type Option } from '../../form.ts'
import { disclosed } from '../../parts.ts'

// What is configured of a destination, as fields of a form.

/** The credentials that a destination has. */
export type Configured = Pick<Destination, 'sign_with' | 'headers' | 'authorization'>

const NOTHING: Configured = { sign_with: null, headers: {}, authorization: null }

/** The fields beside the name. */
export function destinationFields(form: Form, configured = NOTHING): Html {
  const ordered = html`<strong>In order</strong> – one event at a time; a failed one holds up those
    behind it`
  return html`${field(form, 'url', 'URL', {
      type: 'url',
      placeholder: 'https://example.com/hook',
    })}
    <fieldset>
      <legend>Which events</legend>
      ${field(form, 'providers', 'Providers', {
        ...LINES,
        hint: 'One per line. Empty: events of all providers.',
      })}
      ${field(form, 'event_types', 'Event types', {
        ...LINES,
        hint: html`One per line; <code>*</code> stands for any characters: <code>invoice.*</code>.
          Empty: all types.`,
      })}
      ${field(form, 'json', 'Members of the JSON body', {
        ...LINES,
        hint: html`One per line, such as <code>data.object.id=evt_1</code>. All must match.`,
      })}
    </fieldset>
    <fieldset>
      <legend>How they are sent</legend>
      ${checkbox(form, 'ordered', ordered)}
      ${field(form, 'rate', 'Maximum deliveries per second', {
        placeholder: 'no bound',
        inputmode: 'numeric',
      })}
      ${field(form, 'timeout_s', 'Timeout (seconds)', {
        placeholder: '10',
        inputmode: 'numeric',
      })}
      ${field(form, 'body_template', 'Body', {
        ...LINES,
        rows: 3,
        placeholder: 'the payload as it came',
        hint: html`<code>slack</code>, <code>discord</code>, <code>ntfy</code> or
          <code>teams</code> for a message, or JSON with placeholders:
          <code>{"text": "{{event_type}}: {{json.repository.full_name}}"}</code>. Also
          <code>{{provider}}</code>, <code>{{id}}</code>, <code>{{received_at}}</code>,
          <code>{{title}}</code> and <code>{{summary}}</code>.`,
      })}
    </fieldset>
    ${credentialFields(form, configured)}`
}

/** The schemes that people choose most. */
const SCHEMES = ['standard', 'github', 'gitea', 'stripe', 'slack', 'shopify', 'linear', 'hmac']

/** The schemes of the select; it always has the present one, so that saving the form keeps it. */
function signingOptions(sign_with: Configured['sign_with']): readonly Option[] {
  const names = new Set([...SCHEMES, ...(sign_with === null ? [] : [sign_with.scheme])])
  const own = [...names].map((name): Option => [name, `Its own secret: as ${name}`])
  return [['', "The provider's secret, where it signs"], ...own]
}

/** Secrets are shown by their names alone; an empty field keeps what there is. */
function credentialFields(form: Form, { sign_with, headers, authorization }: Configured): Html {
  const kept = 'Configured. Empty: it stays.'
  const names = Object.keys(headers)
  const known = names.length > 0 && html`Configured: <code>${names.join(', ')}</code>. `
  const fields = html`<fieldset>
    <legend>Credentials</legend>
    ${select(form, 'sign_with', 'Signed with', signingOptions(sign_with))}
    ${field(form, 'sign_secret', 'Secret of the signature', {
      ...VERBATIM,
      hint: sign_with === null ? html`<code>whsec_…</code> for Standard Webhooks.` : kept,
    })}
    ${field(form, 'authorization', 'Authorization', {
      ...VERBATIM,
      placeholder: 'Bearer TOKEN',
      hint: authorization === null ? 'Or: Basic NAME:PASSWORD' : kept,
    })}
    ${authorization !== null && checkbox(form, 'remove_authorization', 'Remove authorization')}
    ${field(form, 'headers', 'Further headers', {
      ...LINES,
      placeholder: 'X-Api-Key: …',
      hint: html`${known}<code>Name: value</code>, one a line; <code>Name:</code> removes one.`,
    })}
  </fieldset>`
  return disclosed('Credentials…', fields, { open: form.fault !== undefined })
}

const LINES = { rows: 2, spellcheck: 'false', autocapitalize: 'off' } as const
