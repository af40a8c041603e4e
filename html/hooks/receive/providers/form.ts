import type { Expected } from '../../../../db/hooks/receive/providers.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState } from '../../../../kernel/http/view.ts'
import {
  checkbox,
  field,
  hiddenField,
  NAME,
  postForm,
  refusal,
  select,
  submitLine,
  VERBATIM,
  type FieldOptions,
  type Form,
  type Option,
} from '../../../form.ts'
import { breakable, copyBox, disclosed } from '../../../parts.ts'
import type { Scheme } from '../../../../services/hooks/receive/schemes/scheme.ts'
import { answerFields } from './answers.ts'
import { secretField } from './rotation.ts'

/** Who sends to a provider that is to be added, and how that is proved. */
export interface Sender {
  /** The name of a scheme; `token` or `open` for a sender of any kind. */
  scheme: string
  title: string
  /** What is to be done there. */
  setup: string
  /** The address of its documentation; null for a sender of any kind. */
  docs: string | null
}

/** A sender of any kind that proves itself by a token, or not at all. */
export const TOKEN_SENDER: Sender = {
  scheme: 'token',
  title: 'Any sender, with a token',
  setup:
    'A token is made and shown once. The sender sends it with each delivery, such as in the ' +
    'header Authorization: Bearer.',
  docs: null,
}
export const OPEN_SENDER: Sender = {
  scheme: 'open',
  title: 'Any sender, unchecked',
  setup: 'Nothing is checked: whoever reaches the URL may send. For trusted networks only.',
  docs: null,
}

/** The form that adds a provider of a sender. */
export interface AddForm {
  sender: Sender
  /** The sender makes its secret, so it has to be given. */
  isGiven: boolean
  /** What the operator says of its deliveries. */
  asks: NonNullable<Scheme['asks']>
  /** False for a sender whose key is fetched and who needs nothing else. */
  hasSecret: boolean
  /** Its secret is stored encrypted, and there is no key for that. */
  needsKey: boolean
  baseUrl: string
  /** The open provider that is to verify what it receives; absent for a new one. */
  kept?: KeptProvider | undefined
  form: FormState
}

/** A provider that keeps its URL. */
export interface KeptProvider {
  name: string
  url: string
}

/**
 * Adds a provider that is enabled at once, or lets an open one verify: the address, what to do at
 * the sender, its secret.
 */
export function addForm(view: AddForm): Html {
  const { sender, form: state, kept } = view
  const form = { id: 'create', ...state }
  const isSigned = sender.scheme !== 'token' && sender.scheme !== 'open'
  return postForm(
    { id: 'create-provider', class: 'stack', action: actionOf(kept), target: '#new-provider' },
    html`${refusal(form)} ${hiddenField('trust_mode', isSigned ? 'signed' : sender.scheme)}
    ${isSigned && hiddenField('scheme', sender.scheme)}
    ${kept === undefined ? newAddress(form, view) : keptAddress(kept)} ${atSender(sender)}
    ${proof(form, view)}
    ${
      isSigned &&
      sender.scheme !== 'hmac' &&
      disclosed('Where its type and id are…', placeFields(form), { open: isPlaceTyped(form) })
    }
    ${
      kept === undefined &&
      disclosed('Methods and answer…', answerFields(form), { open: isAnswerTyped(form) })
    }
    ${submitLine(kept === undefined ? 'Add provider' : 'Verify deliveries', 'create-button')}`,
  )
}

function actionOf(kept: KeptProvider | undefined): string {
  return kept === undefined ? '/providers' : `/providers/${encodeURIComponent(kept.name)}/verify`
}

function keptAddress({ url }: KeptProvider): Html {
  return html`<p>The URL stays:</p>
    ${copyBox('new-url', 'URL', breakable(url))}`
}

/** The name, and the address that it becomes part of; the script keeps the two the same. */
function newAddress(form: Form, { baseUrl }: AddForm): Html {
  const path = `${baseUrl}/webhooks/generic/`
  const name = form.typed?.['name'] ?? ''
  return html`${hiddenField('enabled', 'true')}
    ${field(form, 'name', 'Name', {
      required: true,
      ...NAME,
      hint: "The last part of the URL. It can't be changed later.",
      autofocus: form.fault === undefined,
      'data-url': path,
    })}
    <p>The sender sends to this URL:</p>
    ${copyBox('new-url', 'URL', breakable(`${path}${name || '…'}`))}`
}

function atSender({ setup, docs }: Sender): Html {
  return html`<p>
    ${setup}
    ${docs !== null && html`<a href="${docs}" rel="noreferrer">Documentation of the sender</a>`}
  </p>`
}

/** How the sender proves itself. */
function proof(form: Form, view: AddForm): Html | false {
  const { isGiven, needsKey, asks, hasSecret } = view
  const { scheme } = view.sender
  if (scheme === 'token') return false
  if (scheme === 'open') {
    return checkbox(
      form,
      'acknowledge_open',
      "I know that anybody who reaches an open provider's URL can send to it",
      { required: true },
    )
  }
  return html`${needsKey && NEEDS_KEY} ${scheme === 'hmac' && ownScheme(form)}
  ${expectedFields(form, asks)} ${hasSecret && secretField(form, isGiven)}`
}

/** What deliveries must have beside a right signature. */
function expectedFields(form: Form, asks: AddForm['asks']): readonly (Html | false)[] {
  return EXPECTED.map(([name, label, own]) => {
    const needed = asks[name]
    return (
      needed !== undefined && field(form, name, label, { ...OPTIONAL, required: needed, ...own })
    )
  })
}

const EXPECTED: readonly (readonly [keyof Expected, string, FieldOptions])[] = [
  [
    'topics',
    'ARNs of the topics',
    {
      placeholder: 'arn:aws:sns:eu-west-1:123456789012:orders',
      hint: 'Separated by commas. Events of other topics are refused until their subscription is confirmed.',
    },
  ],
  ['issuer', 'Issuer', { placeholder: 'https://login.example.com', hint: 'As in its tokens.' }],
  ['audience', 'Audience', { hint: 'The claim aud of a token.' }],
  ['subject', 'Subject', { hint: 'The claim sub of a token, or its verified e-mail address.' }],
]

const NEEDS_KEY = html`<p class="note">
  Secrets of providers are stored encrypted: set <code>GATEHOUSE_SECRET_KEY</code> first, as
  <code>openssl rand -base64 32</code> prints one.
</p>`

/** A refused form shows what was typed. */
function isAnswerTyped({ typed = {} }: Form): boolean {
  const { methods = 'POST', answer_status, answer_type, answer_body } = typed
  return methods !== 'POST' || Boolean(answer_status || answer_type || answer_body)
}

function isPlaceTyped({ typed = {} }: Form): boolean {
  const { event_type_header, event_type_json, id_header } = typed
  return Boolean(event_type_header || event_type_json || id_header)
}

const ENCODINGS: readonly Option[] = ['hex', 'base64', 'base64url'].map((name) => [name, name])
const ALGORITHMS: readonly Option[] = [
  ['sha256', 'SHA-256'],
  ['sha512', 'SHA-512'],
]

const OPTIONAL = { required: false, ...VERBATIM }
const HEADER = { ...OPTIONAL, pattern: '[A-Za-z0-9_\\-]{1,100}' }

/** A signature as an operator describes it. */
function ownScheme(form: Form): Html {
  return html`${field(form, 'header', 'Header of the signature', {
    ...HEADER,
    required: true,
    placeholder: 'X-Signature',
  })}
  ${field(form, 'prefix', 'Text before the signature', { ...OPTIONAL, placeholder: 'sha256=' })}
  ${select(form, 'encoding', 'Encoding', ENCODINGS)}
  ${select(form, 'algorithm', 'Algorithm', ALGORITHMS)}
  ${field(form, 'signed_text', 'What is signed', {
    ...OPTIONAL,
    placeholder: '{body}',
    hint: 'such as {timestamp}.{body} or {id}.{timestamp}.{body}; empty = {body}',
  })}
  ${field(form, 'timestamp_header', 'Header of {timestamp}, in Unix seconds', HEADER)}
  ${placeFields(form)}`
}

/** Where deliveries say what they are. */
function placeFields(form: Form): Html {
  return html`${field(form, 'event_type_header', 'Header of the event type', HEADER)}
  ${field(form, 'event_type_json', 'or member of the body that is the event type', {
    ...OPTIONAL,
    placeholder: 'event.type',
  })}
  ${field(form, 'id_header', 'Header of the delivery id', HEADER)}`
}
