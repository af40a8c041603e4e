import type { ChosenAnswer, DeliveryMethod } from '../../../../db/hooks/receive/providers.ts'
import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import {
  checkbox,
  field,
  postForm,
  refusal,
  select,
  submit,
  type Form,
  type Option,
} from '../../../form.ts'
import { disclosed } from '../../../parts.ts'
import type { ProviderCard } from './shown.ts'

// The methods that a generic receiver takes, and its answer to a stored delivery.

const METHODS: readonly DeliveryMethod[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const TYPES: readonly Option[] = [
  ['', 'text/plain'],
  ['application/json', 'application/json'],
  ['application/xml', 'application/xml'],
]

/** The fields of the form that creates a provider, and of the one that changes it. */
export function answerFields(form: Form): Html {
  const ticked = (form.typed?.['methods'] ?? 'POST').split('\n')
  return html`<fieldset>
      <legend>Methods</legend>
      ${METHODS.map((value) => {
        return checkbox(form, 'methods', value, { value, checked: ticked.includes(value) })
      })}
      <p class="hint">
        HEAD and OPTIONS are answered and store nothing. None of the boxes means POST.
      </p>
    </fieldset>
    ${field(form, 'answer_status', 'Status of the answer', {
      placeholder: '202',
      inputmode: 'numeric',
      pattern: '[245]\\d\\d',
      title: '200 to 299, or 400 to 599; empty = the usual answer',
      hint: 'Empty, with an empty body: the usual 202 with the id of the event.',
    })}
    ${select(form, 'answer_type', 'Content type of the answer', TYPES)}
    ${field(form, 'answer_body', 'Body of the answer', {
      rows: 3,
      spellcheck: 'false',
      hint: 'Fixed text of 4,096 bytes at most; anybody who sends to this provider sees it.',
    })}`
}

/** The form that changes them; open right after it was sent, so that the focus stays. */
export function answerForm(card: ProviderCard, key: string): Html {
  const { name, methods, answer, answers: sent } = card
  const typed = {
    methods: (methods ?? ['POST']).join('\n'),
    answer_status: String(answer?.status ?? ''),
    answer_type: answer?.type === 'text/plain' ? '' : (answer?.type ?? ''),
    answer_body: answer?.body ?? '',
  }
  const fields = { id: `answers-${key}`, typed, ...sent }
  const form = postForm(
    { class: 'stack', action: `/providers/${key}/answers`, target: 'closest article' },
    html`${refusal(fields)} ${answerFields(fields)}
      <p>
        ${submit(html`Save answer <span class="hidden">of ${name}</span>`, { id: `answer-${key}` })}
      </p>`,
  )
  return disclosed('Methods and answer…', form, { open: sent !== undefined })
}

/** The facts of a provider for which an operator has chosen them. */
export function answerFacts({ methods, answer }: Pick<ProviderCard, 'methods' | 'answer'>) {
  return {
    ...(methods !== null && { Methods: methods.join(', ') }),
    ...(answer !== null && { Answer: answerText(answer) }),
  }
}

function answerText({ status, type, body }: ChosenAnswer): Printable {
  const isFailure = status >= 400
  return html`${status}${type !== null && html`, ${type}, <code>${body.slice(0, 200)}</code>`}
  ${
    isFailure &&
    html`<span class="note">
      Events are stored, but a sender takes this answer for a failure and sends them again.
    </span>`
  }`
}
