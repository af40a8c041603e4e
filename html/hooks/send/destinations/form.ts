import type { Destination, Matches } from '../../../../db/hooks/send/destinations.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { TestResult } from '../../../../services/hooks/send/destinations/test-send.ts'
import {
  checkbox,
  field,
  refusal,
  select,
  submit,
  VERBATIM,
  type Form,
  type Option,
} from '../../../form.ts'
import { countText, disclosed, longText } from '../../../parts.ts'

// What is configured of a destination, as fields of a form.

/** The credentials that a destination has. */
export type Configured = Pick<Destination, 'sign_with' | 'headers' | 'authorization'>

const NOTHING: Configured = { sign_with: null, headers: {}, authorization: null }

/** What the form says beside what was typed. */
export interface FormHelp {
  /** All providers that there are. */
  providers: readonly string[]
  /** Types that came so far. */
  types: readonly string[]
  /** What the filters want of the newest events; undefined while one has another form. */
  matches: Matches | undefined
  /** What came of a test. */
  tested: TestState
}

/** The last test: none yet, its result, or why it was refused. */
export type TestState = TestResult | Form | undefined

/** The address that says how many events the filters in a form want. */
export const MATCHES_PATH = '/destinations/-/matches'

/** The address of a destination, without a token that it may have. */
export function urlField(form: Form): Html {
  return field(form, 'url', 'URL', { type: 'url', placeholder: 'https://example.com/hook' })
}

/** Which events, how they are sent, and with what. */
export function destinationFields(form: Form, help: FormHelp, configured?: Configured): Html {
  const since = configured === undefined ? FIRST : AGAIN
  return html`${filterFields(form, help)} ${sendingFields(form, since)}
  ${credentialFields(form, configured ?? NOTHING)}`
}

/** Where a new destination begins, and where a present one begins again. */
const FIRST = ['First event', 'the next one'] as const
const AGAIN = ['Send again from', 'nothing'] as const

/** Which events. The count below follows what is typed; the fields of secrets are not sent there. */
function filterFields(form: Form, { providers, types, matches }: FormHelp): Html {
  const { typed = {} } = form
  const hasMore = ['providers', 'event_types', 'json'].some((name) => typed[name])
  const more = html`${field(form, 'providers', 'Further providers', {
    ...LINES,
    hint: 'One per line.',
  })}
  ${field(form, 'event_types', 'Further event types', { ...LINES, hint: 'One per line.' })}
  ${field(form, 'json', 'Members of the JSON body', {
    ...LINES,
    hint: html`One per line, such as <code>data.object.id=evt_1</code>. All must match.`,
  })}`
  const isOpen = hasMore || form.fault !== undefined
  return html`<fieldset
    hx-get="${MATCHES_PATH}"
    hx-trigger="input delay:250ms"
    hx-target="#${MATCHES_ID}"
    hx-swap="outerHTML"
    hx-sync="this:replace"
  >
    <legend>Which events</legend>
    ${select(form, 'provider', 'Provider', providerOptions(providers, typed['provider']))}
    ${field(form, 'event_type', 'Event type', {
      ...VERBATIM,
      placeholder: 'all types',
      suggestions: types,
      hint: html`<code>*</code> stands for any characters: <code>invoice.*</code>`,
    })}
    ${matchesLine(matches)} ${disclosed('More filters…', more, { open: isOpen })}
  </fieldset>`
}

/** The providers there are. One that was removed since it was chosen stays, so that it is seen. */
function providerOptions(names: readonly string[], chosen = ''): readonly Option[] {
  const isGone = chosen !== '' && !names.includes(chosen)
  const gone: readonly Option[] = isGone ? [[chosen, `${chosen} (no such provider)`]] : []
  return [['', 'All providers'], ...gone, ...names.map((name): Option => [name, name])]
}

const MATCHES_ID = 'matches'

/** How many of the newest events the filters want. */
export function matchesLine(matches: Matches | undefined): Html {
  return html`<p id="${MATCHES_ID}" class="hint" role="status">${matchesText(matches)}</p>`
}

function matchesText(matches: Matches | undefined): string {
  if (matches === undefined) return 'A filter is not complete yet.'
  const { matched, events } = matches
  if (events === 0) return 'No events came so far.'
  return `Matches ${matched.toLocaleString('en')} of the last ${countText(events, 'event')}.`
}

function sendingFields(form: Form, [label, placeholder]: typeof FIRST | typeof AGAIN): Html {
  const ordered = html`<strong>In order</strong> – one event at a time; a failed one holds up those
    behind it`
  const fields = html`<fieldset>
    <legend class="hidden">How they are sent</legend>
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
    ${field(form, 'since', label, {
      placeholder,
      hint: 'The id of an event, or a time such as 2026-01-31T12:00:00Z.',
    })}
  </fieldset>`
  return disclosed('How they are sent…', fields, { open: form.fault !== undefined })
}

/** The button that sends a test of what is typed, before it is saved, and what came of it. */
export function testButton(action: string): Html {
  return submit('Send test', {
    id: 'send-test',
    formaction: action,
    'hx-post': action,
    'hx-target': `#${TEST_ID}`,
    'hx-swap': 'outerHTML',
    'hx-sync': 'this:drop',
  })
}

const TEST_ID = 'test-result'

/** What a receiver answered to a test. */
export function testResult(tested: TestState): Html {
  return html`<div id="${TEST_ID}" role="status">${tested !== undefined && testText(tested)}</div>`
}

function testText(tested: TestResult | Form): Html | false {
  if (!('outcome' in tested)) return refusal(tested)
  const { outcome, status, ms, detail, answer } = tested
  const isGood = outcome === 'delivered'
  const reason = detail === null ? '' : `: ${detail}`
  const text = status === null ? `No answer${reason}` : `Answered ${status} in ${ms} ms${reason}`
  return html`<p>
      <span class="badge ${isGood ? 'verified' : 'bad'}"
        >${isGood ? 'test ok' : 'test failed'}</span
      >
      ${text}
    </p>
    ${answer !== null && longText('Answer to the test', answer)}`
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
    <legend class="hidden">Credentials</legend>
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

const LINES = { rows: 2, ...VERBATIM }
