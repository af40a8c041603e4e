import type { TObject } from 'typebox'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, View } from '../../../kernel/http/view.ts'
import type { Member } from '../../../services/ops/checks/members.ts'
import {
  capitalized,
  checkbox,
  field,
  hiddenField,
  postForm,
  refusal,
  select,
  submit,
  submitLine,
  VERBATIM,
  type Form,
} from '../../form.ts'
import { contentView } from '../../layout.ts'
import { attributes } from '../../parts.ts'

/** The fields of a check of one type. */
export interface CheckFields {
  type: string
  members: readonly Member[]
  /** Of this type; the fields have their limits from it. */
  schema: TObject
  form: FormState
}

/** What `/checks/new` shows. */
export interface NewCheckView {
  types: readonly string[]
  /** Undefined until a type is chosen. */
  fields: CheckFields | undefined
}

const HINTS: Readonly<Record<string, string>> = {
  every: 'Such as 10s, 5m or 24h; 60s without it.',
  retries: 'How often a bad result is tried again before it counts; 1 without it.',
  timeout_s: 'A run that takes longer has failed; 10 without it.',
}

/** A check to be added: first its type, then what it takes. */
export function newCheckView({ types, fields }: NewCheckView): View {
  const title = 'Add a check'
  const above = html`<p class="crumb"><a href="/checks">Checks</a> / new</p>
    <h1>${title}</h1>
    <p class="muted">
      It runs from now on, beside the checks of the inventory file. A check that runs a program
      stands in that file alone.
    </p>`
  const content = html`<div id="new-check">
    ${typeForm(types, fields?.type)} ${fields !== undefined && creationForm(fields)}
  </div>`
  return contentView({ title, section: 'checks', above }, content)
}

function typeForm(types: readonly string[], chosen = types[0] ?? ''): Html {
  const form = { id: 'kind', typed: { type: chosen } }
  const own = { class: 'panel filter', method: 'get', action: '/checks/new' }
  const options = types.map((type) => [type, type] as const)
  return html`<form${attributes(own)}>
    ${select(form, 'type', 'Type', options)} ${submit('Choose type', {})}
  </form>`
}

function creationForm(fields: CheckFields): Html {
  const form = { id: 'check', ...fields.form, schema: fields.schema }
  const required = { required: true, maxlength: 200, ...VERBATIM }
  return postForm(
    { id: 'check', class: 'panel stack', action: '/checks', target: '#new-check' },
    html`${refusal(form)} ${hiddenField('type', fields.type)}
    ${field(form, 'service', 'Service', required)} ${field(form, 'name', 'Name', required)}
    ${memberFields(form, fields.members)} ${submitLine('Add check', 'add-check')}`,
  )
}

/** The form that changes a check. */
export function changeForm(id: number, fields: CheckFields): Html {
  const form = { id: 'check', ...fields.form, schema: fields.schema }
  return postForm(
    { id: 'check', class: 'stack changes', action: `/checks/${id}`, target: '#check-page' },
    html`${refusal(form)} ${hiddenField('type', fields.type)} ${memberFields(form, fields.members)}
    ${submitLine('Save check', 'save-check')}`,
  )
}

function memberFields(form: Form, members: readonly Member[]): readonly Html[] {
  return members.map((member) => memberField(form, member))
}

/** What a member is written with, by its schema. */
function memberField(form: Form, { name, writing, isRequired, schema }: Member): Html {
  const label = capitalized(name.replace(/_s$/, ' (seconds)').replaceAll('_', ' '))
  const { enum: values } = schema as { enum?: readonly unknown[] }
  const hint = HINTS[name]
  if (writing === 'switch') return checkbox(form, name, label)
  if (values !== undefined) {
    const options = values.map((value) => [String(value), String(value)] as const)
    return select(form, name, label, [['', 'Default'], ...options])
  }
  if (writing === 'pairs' || writing === 'lines') {
    const pairs = 'Name: value, one on a line. Stored values are shown as "configured".'
    return field(form, name, label, {
      rows: 3,
      hint: writing === 'pairs' ? pairs : 'One on a line.',
    })
  }
  const isText = writing === 'text'
  return field(form, name, label, {
    required: isRequired,
    ...(isText && { type: 'text', step: undefined, min: undefined, max: undefined, ...VERBATIM }),
    ...(hint !== undefined && { hint }),
  })
}
