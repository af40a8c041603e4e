import type { TObject } from '../../../../kernel/schema.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { FormState, View } from '../../../../kernel/http/view.ts'
import type { Member } from '../../../../services/ops/watch/checks/members.ts'
import type { CheckResult } from '../../../../services/ops/watch/checks/run.ts'
import {
  capitalized,
  checkbox,
  field,
  hiddenField,
  postForm,
  refusal,
  select,
  submit,
  VERBATIM,
  type Form,
} from '../../../form.ts'
import { contentView } from '../../../layout.ts'
import { attributes, disclosed } from '../../../parts.ts'
import { stateBadge } from '../checks.ts'

/** The fields of a check of one type. */
export interface CheckFields {
  type: string
  members: readonly Member[]
  /** Of this type; the fields have their limits from it. */
  schema: TObject
  form: FormState
}

/** What `/checks/new` shows. */
interface NewCheckView {
  types: readonly string[]
  /** Names of services that there are. */
  services: readonly string[]
  /** Undefined for a type that can't be made by hand. */
  fields: CheckFields | undefined
  form: FormState
  /** What a try has found. */
  tried: CheckResult | undefined
}

const HINTS: Readonly<Record<string, string>> = {
  period: 'How often its job calls, such as 5m, 1h or 1d. Empty for a crontab, in More settings.',
  every: 'Such as 10s, 5m or 24h; 60s without it.',
  retries: 'How often a bad result is tried again before it counts; 1 without it.',
  timeout_s: 'A run that takes longer has failed; 10 without it.',
}

/** A check to be added: its type, what it takes, and a try before it is added. */
export function newCheckView(view: NewCheckView): View {
  const title = 'Add a check'
  const above = html`<p class="crumb"><a href="/checks">Checks</a> / new</p>
    <h1>${title}</h1>`
  const { types, fields, form } = view
  const kind = fields === undefined ? form : { typed: { type: fields.type } }
  const content = html`<div id="new-check" class="panel">
    ${typeForm(types, kind)} ${fields !== undefined && creationForm(fields, view)}
  </div>`
  const below = html`<p class="muted">
    It runs from now on, beside the checks of the inventory file. A check that runs a program
    stands in that file alone.
  </p>`
  return contentView({ title, section: 'checks', above, below }, content)
}

/** With script, choosing a type shows its fields at once. */
function typeForm(types: readonly string[], state: Omit<Form, 'id'>): Html {
  const form = { id: 'kind', ...state }
  const own = {
    class: 'filter',
    method: 'get',
    action: '/checks/new',
    'hx-get': '/checks/new',
    'hx-trigger': 'change, submit',
    'hx-push-url': 'true',
    'hx-target': '#new-check',
    'hx-swap': 'outerHTML',
    'hx-sync': 'this:replace',
  }
  const options = types.map((type) => [type, type] as const)
  return html`<form${attributes(own)}>
    ${refusal(form)} ${select(form, 'type', 'Type', options)} ${submit('Choose type', { class: 'no-script' })}
  </form>`
}

function creationForm(fields: CheckFields, { services, tried }: NewCheckView): Html {
  const form = { id: 'check', ...fields.form, schema: fields.schema }
  const text = { maxlength: 200, ...VERBATIM }
  const hint = 'What it looks at, without it.'
  return postForm(
    { id: 'check', class: 'stack', action: '/checks', target: '#new-check' },
    html`${refusal(form)} ${hiddenField('type', fields.type)}
      ${field(form, 'service', 'Service', { required: true, suggestions: services, ...text })}
      ${memberFields(form, fields, field(form, 'name', 'Name', { hint, ...text }))}
      ${tried !== undefined && triedLine(tried)}
      <p class="field actions">
        ${submit('Add check', { class: 'primary', id: 'add-check' })}
        ${fields.type !== 'heartbeat' && submit('Try it', TRY)}
      </p>`,
  )
}

/** The same fields go to another address, whose answer takes the same place. */
const TRY = {
  id: 'try-check',
  formaction: '/checks/try',
  formnovalidate: true,
  'hx-post': '/checks/try',
  'hx-target': '#new-check',
  'hx-swap': 'outerHTML',
}

/** What a try has found. */
function triedLine({ state, message, ms }: CheckResult): Html {
  return html`<p id="tried" class="field tried" role="status">
    ${stateBadge(state)} <bdi>${message}</bdi> <span class="muted">${ms} ms. Not stored.</span>
  </p>`
}

/** The form that changes a check. */
export function changeForm(id: number, fields: CheckFields): Html {
  const form = { id: 'check', ...fields.form, schema: fields.schema }
  return postForm(
    { id: 'check', class: 'stack changes', action: `/checks/${id}`, target: '#check-page' },
    html`${refusal(form)} ${hiddenField('type', fields.type)} ${memberFields(form, fields)}
      <p class="field">${submit('Save check', { id: 'save-check' })}</p>`,
  )
}

/** What a check must have and how often it is due; the rest is folded, unless some of it is set. */
function memberFields(form: Form, { type, members }: CheckFields, name?: Html): Html {
  const due = type === 'heartbeat' ? 'period' : 'every'
  const isSeen = (member: Member) => member.isRequired || member.name === due
  const refused = Object.keys(form.fault?.fields ?? {})
  const others = members.filter((member) => !isSeen(member))
  const isOpen = others.some(({ name: one }) => {
    return refused.includes(one) || !['', 'false'].includes(form.typed?.[one] ?? '')
  })
  const folded = html`${name} ${others.map((member) => memberField(form, member))}`
  return html`${members.filter(isSeen).map((member) => memberField(form, member))}
  ${disclosed('More settings', folded, { id: 'more-settings', open: isOpen })}`
}

/** What a member is written with, by its schema. */
function memberField(form: Form, { name, writing, isRequired, schema }: Member): Html {
  const words = name.replace(/_s$/, ' (seconds)').replaceAll('_', ' ')
  const label = capitalized(words.replace(/^url$/, 'URL'))
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
