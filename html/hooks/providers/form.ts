import { html, type Html } from '../../../kernel/html.ts'
import type { FormState } from '../../../kernel/http/view.ts'
import {
  checkbox,
  field,
  postForm,
  radios,
  refusal,
  select,
  submitLine,
  VERBATIM,
  type Form,
  type Option,
} from '../../form.ts'
import { disclosed, section } from '../../parts.ts'
import type { SenderInfo } from '../../../services/hooks/schemes/describe.ts'
import { NAME } from '../layout.ts'
import { answerFields } from './answers.ts'
import { secretField } from './card.ts'

interface CreateForm {
  baseUrl: string
  /** True when signing secrets can be stored. */
  canSign: boolean
  /** The schemes by their titles. */
  senders: readonly SenderInfo[]
  form: FormState
}

/** The form that creates a generic provider. */
export function createForm({ form: state, baseUrl, canSign, senders }: CreateForm): Html {
  const form = { id: 'create', ...state }
  const needsKey = !canSign && html`; needs <code>GATEHOUSE_SECRET_KEY</code>`
  const signed = html`the sender signs each delivery in its own way${needsKey}`
  const trust = radios(
    form,
    'trust_mode',
    'Trust',
    [
      ['token', 'Token', 'the sender proves itself with a secret made for it'],
      ['signed', 'Signed', signed, { disabled: !canSign }],
      ['open', 'Open', 'nothing is checked; for trusted networks only'],
    ],
    html`${canSign && signing(form, senders)}
    ${checkbox(
      form,
      'acknowledge_open',
      "I know that anybody who reaches an open provider's URL can send to it",
      { labelClass: 'choice acknowledge' },
    )}`,
  )
  const content = html`<p class="muted">
      For any sender that posts to a URL. It gets
      <code>${baseUrl}/webhooks/generic/<em>name</em></code> and starts disabled.
    </p>
    ${postForm(
      { id: 'create-provider', class: 'stack', action: '/providers', target: '#providers' },
      html`${refusal(form)} ${field(form, 'name', 'Name', { required: true, ...NAME })} ${trust}
      ${disclosed('Methods and answer…', answerFields(form), { open: isAnswerTyped(form) })}
      ${submitLine('Add provider', 'create-button')}`,
    )}`
  return section('create-title', 'Add a generic provider', content, { class: 'panel' })
}

/** A refused form shows what was typed. */
function isAnswerTyped({ typed = {} }: Form): boolean {
  const { methods = 'POST', answer_status, answer_type, answer_body } = typed
  return methods !== 'POST' || Boolean(answer_status || answer_type || answer_body)
}

/** What only a sender that signs has. */
function signing(form: Form, senders: readonly SenderInfo[]): Html {
  const schemes = senders.map(({ name, title }): Option => [name, title])
  return html`<div class="given">
    ${select(form, 'scheme', 'Sender', schemes)}
    <p class="hint"><a href="/providers/senders">What is to be done at each sender</a></p>
    ${secretField(form)}
    ${disclosed('Describe the signature (HMAC)…', ownScheme(form), {
      open: form.typed?.['scheme'] === 'hmac',
    })}
  </div>`
}

const ENCODINGS: readonly Option[] = ['hex', 'base64', 'base64url'].map((name) => [name, name])
const ALGORITHMS: readonly Option[] = [
  ['sha256', 'SHA-256'],
  ['sha512', 'SHA-512'],
]

function ownScheme(form: Form): Html {
  const optional = { required: false, ...VERBATIM }
  const header = { ...optional, pattern: '[A-Za-z0-9_\\-]{1,100}' }
  return html`${field(form, 'header', 'Header of the signature', {
    ...header,
    placeholder: 'X-Signature',
  })}
  ${field(form, 'prefix', 'Text before the signature', { ...optional, placeholder: 'sha256=' })}
  ${select(form, 'encoding', 'Encoding', ENCODINGS)}
  ${select(form, 'algorithm', 'Algorithm', ALGORITHMS)}
  ${field(form, 'signed_text', 'What is signed', {
    ...optional,
    placeholder: '{body}',
    hint: 'such as {timestamp}.{body} or {id}.{timestamp}.{body}; empty = {body}',
  })}
  ${field(form, 'timestamp_header', 'Header of {timestamp}, in Unix seconds', header)}
  ${field(form, 'event_type_header', 'Header of the event type, of any sender', header)}
  ${field(form, 'event_type_json', 'or member of the body that is the event type', {
    ...optional,
    placeholder: 'event.type',
  })}
  ${field(form, 'id_header', 'Header of the delivery id', header)}`
}
