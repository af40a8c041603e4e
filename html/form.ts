import { html, type Html, type Printable } from '../kernel/html.ts'
import type { FormState } from '../kernel/http/view.ts'
import { attributes, button, type Attributes } from './parts.ts'

/** A form on a page; the ids within it begin with its own. A filter has no schema. */
export interface Form {
  id: string
  schema?: FormState['schema']
  typed?: FormState['typed'] | undefined
  fault?: FormState['fault']
}

/** An option of a list or of radio buttons: its value, its name, and what it means. */
export type Option = readonly [value: string, label: string, meaning?: Printable, own?: Attributes]

/** A field's attributes, and what stands around it. */
export interface FieldOptions {
  /** Stands below the field. */
  hint?: Printable
  /** Stands in front of it, in the same line. */
  prefix?: string
  /** Values that the browser offers; any other may be typed as well. */
  suggestions?: readonly string[] | undefined
  /** In a filter: half the width of other fields. */
  width?: FieldWidth | undefined
  [attribute: string]: Attributes[string] | Printable
}

type FieldWidth = 'half'

/** For names, addresses and the like, which no keyboard should correct. */
export const VERBATIM = { autocapitalize: 'off', spellcheck: 'false' } as const

/** The field of a name that becomes part of an address. */
export const NAME = {
  maxlength: 64,
  pattern: '[a-z0-9][a-z0-9_\\-]{0,63}',
  title: 'Lower-case letters, digits, - and _; a letter or digit first',
  ...VERBATIM,
}

/** What a schema says of a field. */
interface Limits {
  default?: unknown
  type?: string
  maxLength?: number
  minimum?: number
  maximum?: number
  anyOf?: readonly Limits[]
}

/**
 * A form that posts. htmx puts the reply in the place of `target`; without script the browser goes
 * to a page. A browser with script asks `confirm` first.
 */
export function postForm(
  { action, target, confirm, ...own }: Attributes & { action: string },
  content: Printable,
): Html {
  const htmx = {
    'hx-post': action,
    'hx-target': target,
    'hx-swap': 'outerHTML',
    'hx-confirm': confirm,
    // The second click of two posts nothing: htmx would send it once the first is answered.
    'hx-sync': 'this:drop',
  }
  return html`<form${attributes({ ...own, method: 'post', action, ...htmx })}>${content}</form>`
}

/** A form that takes something away: it says what follows, and is marked as dangerous. */
export function removalForm(
  verb: string,
  name: string,
  effect: string,
  form: Attributes & { action: string },
): Html {
  const label = html`${verb} <span class="hidden">${name}</span>`
  return postForm(
    { ...form, confirm: `${verb} ${name}? ${effect}` },
    html`<p>${effect}</p>
      ${submit(label, { class: 'danger' })}`,
  )
}

/**
 * The message of a refused form, read to everybody; nothing where each message stands below its
 * field.
 */
export function refusal(form: Form): Html | false {
  const { id, schema, fault } = form
  if (fault === undefined) return false
  const refused = Object.keys(fault.fields)
  const fields = schema?.properties ?? {}
  if (refused.length > 0 && refused.every((name) => Object.hasOwn(fields, name))) return false
  return html`<p id="${id}-refused" class="refused" role="alert">${sentence(fault.message)}</p>`
}

/**
 * A field with its label. It has several lines where `rows` says how many. Limits come from the
 * form's schema; further attributes are set as they are.
 */
export function field(
  form: Form,
  name: string,
  label: string,
  { hint, prefix, suggestions, width, ...attributesOf }: FieldOptions = {},
): Html {
  const own = attributesOf as Attributes
  const { maxLength, minimum, maximum, type, default: first } = limitsOf(form, name)
  const isNumber = type === 'number' || type === 'integer'
  const isLong = own['rows'] !== undefined
  const id = String(own['id'] ?? `${form.id}-${name}`)
  const describedBy = hint === undefined ? own['aria-describedby'] : `${id}-hint`
  const all = {
    id,
    name,
    // A field that is filled from the start must not be emptied.
    required: form.schema?.required?.includes(name) === true || (first ?? '') !== '',
    maxlength: maxLength,
    ...(isNumber && { type: 'number', min: minimum, max: maximum }),
    ...(type === 'number' && { step: 'any' }),
    ...(!isNumber && !isLong && { autocomplete: 'off' }),
    ...(suggestions && { list: listIdOf(id) }),
    ...own,
    ...stateOf(form, name, id, describedBy),
  }
  const value = valueOf(form, name)
  const control = isLong
    ? html`<textarea${attributes(all)}>\n${value}</textarea>`
    : html`<input${attributes({ ...all, value })} />`
  return html`<div class="${fieldClass(width)}">
    <label for="${id}">${label}</label>
    ${prefix === undefined ? control : prefixed(prefix, control)}
    ${suggestions && suggestionList(id, suggestions)} ${messageBelow(form, name, label, id)}
    ${hint !== undefined && html`<p id="${id}-hint" class="hint">${hint}</p>`}
  </div>`
}

/** A box to tick. */
export function checkbox(
  form: Form,
  name: string,
  label: Printable,
  { labelClass = 'choice', ...own }: Attributes & { labelClass?: string } = {},
): Html {
  const checked = valueOf(form, name) === 'true'
  const id = `${form.id}-${name}`
  const state = stateOf(form, name, id)
  const all = { type: 'checkbox', name, value: 'true', checked, ...own, ...state }
  return html`<label class="${labelClass}"><input${attributes(all)} /> <span>${label}</span></label
    >${messageBelow(form, name, 'This box', id)}`
}

/** Options of which one is chosen, all in sight; `more` stands below them. */
export function radios(
  form: Form,
  name: string,
  legend: string,
  options: readonly Option[],
  more: Printable = null,
): Html {
  const { autofocus, ...state } = stateOf(form, name, `${form.id}-${name}`)
  return html`<fieldset${attributes(state)}>
    <legend>${legend}</legend>
    ${options.map(([value, label, meaning, own], at) => {
      const checked = valueOf(form, name) === value
      const all = {
        type: 'radio',
        name,
        value,
        checked,
        ...own,
        autofocus: at === 0 && autofocus,
      }
      return html`<label class="choice">
        <input${attributes(all)} />
        <span><strong>${label}</strong>${meaning !== undefined && html` – ${meaning}`}</span>
      </label>`
    })}
    ${messageBelow(form, name, legend, `${form.id}-${name}`)} ${more}
  </fieldset>`
}

/** Options of which one is chosen from a list. */
export function select(
  form: Form,
  name: string,
  label: string,
  options: readonly Option[],
  width?: FieldWidth,
): Html {
  const id = `${form.id}-${name}`
  return html`<div class="${fieldClass(width)}">
    <label for="${id}">${label}</label>
    <select${attributes({ id, name, ...stateOf(form, name, id) })}>
      ${choices(options, valueOf(form, name))}
    </select>
    ${messageBelow(form, name, label, id)}
  </div>`
}

/** Options of a filter: any, or one of the values, each named as it is but with a capital. */
export function anyOf(...values: readonly string[]): readonly Option[] {
  return [['', 'Any'], ...values.map((value) => [value, capitalized(value)] as const)]
}

/** A text with a capital letter at its beginning. */
export function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}

function choices(options: readonly Option[], chosen: string): readonly Html[] {
  return options.map(([value, text]) => {
    return html`<option${attributes({ value, selected: value === chosen })}>${text}</option>`
  })
}

/** A value that the form carries along. */
export function hiddenField(name: string, value: string): Html {
  return html`<input${attributes({ type: 'hidden', name, value })} />`
}

/** The button that sends a form. */
export function submit(label: Printable, own: Attributes = { class: 'primary' }): Html {
  return button(label, { type: 'submit', ...own })
}

/**
 * A switch that says whether something is enabled, and changes that. It keeps its id, and with it
 * the focus; its name is that of the element `name-KEY`.
 */
export function switchForm(
  key: string,
  enabled: boolean,
  form: Attributes & { action: string },
  disabled = false,
): Html {
  const state = enabled ? 'Enabled' : 'Disabled'
  const id = `toggle-${key}`
  const own = {
    id,
    class: 'switch touch',
    role: 'switch',
    'aria-checked': String(enabled),
    'aria-labelledby': `name-${key} ${id}`,
    name: 'enabled',
    value: String(!enabled),
    disabled,
  }
  const label = html`<span class="track" aria-hidden="true"></span>${state}`
  return postForm(form, submit(label, own))
}

/** The button on a line of its own, at the end of a form. */
export function submitLine(label: string, id: string): Html {
  return html`<p class="field">${submit(label, { class: 'primary', id })}</p>`
}

/**
 * A search or filter above a list: an ordinary form with GET. With script htmx replaces the
 * element `results` and puts the address into the address bar. `trigger` is when it asks beside the
 * button; else it asks when a list is chosen from. "Back" leads to the filters before, unless
 * `replaces` is set.
 */
export function filterForm(
  label: string,
  {
    path,
    results,
    trigger = 'change target:select',
    replaces = false,
  }: { path: string; results: string; trigger?: string; replaces?: boolean },
  fields: Printable,
): Html {
  return html`<form
    class="filter"
    role="search"
    aria-label="${label}"
    method="get"
    action="${path}"
    hx-get="${path}"
    hx-target="#${results}"
    hx-swap="outerHTML"
    ${replaces ? html`hx-replace-url="true"` : html`hx-push-url="true"`}
    hx-trigger="submit, ${trigger}"
    hx-sync="this:replace"
  >
    ${fields}
  </form>`
}

/** A list of this many rows needs no search. */
const FEW_ROWS = 8

/**
 * A field above a long list that is whole on the page: the script hides the rows whose `data-find`
 * lacks one of its words.
 */
export function rowFilter(
  label: string,
  rows: string,
  count: number,
  more: Attributes = {},
): Html | false {
  if (count <= FEW_ROWS) return false
  const own = { type: 'search', name: undefined, 'data-filters': rows, ...VERBATIM, ...more }
  return html`<div class="filter js-only" role="search">
    ${field({ id: rows }, 'find', label, own)}
    <p class="muted" role="status" id="${rows}-found"></p>
  </div>`
}

/** While one types into the field with this id, the server renews what it offers. */
export function renewedBy(path: string, id: string): Attributes {
  return {
    'hx-get': path,
    'hx-trigger': 'input changed delay:150ms',
    'hx-target': `#${listIdOf(id)}`,
    'hx-swap': 'innerHTML',
    'hx-sync': 'this:replace',
  }
}

/** The values that a field offers, as `renewedBy` gets them. */
export function suggestionOptions(values: readonly string[]): Html {
  return html`${values.map((value) => html`<option value="${value}"></option>`)}`
}

function suggestionList(id: string, values: readonly string[]): Html {
  return html`<datalist id="${listIdOf(id)}">${suggestionOptions(values)}</datalist>`
}

function listIdOf(id: string): string {
  return `${id}-list`
}

/** A message of the contract as a sentence for people. It may begin with the name of a field. */
export function sentence(text: string): string {
  const shown = /^[a-z]+_/.test(text) ? text : capitalized(text)
  return /[.!?]$/.test(shown) ? shown : `${shown}.`
}

function fieldClass(width: FieldWidth | undefined): string {
  return width === undefined ? 'field' : `field ${width}`
}

function prefixed(prefix: string, control: Html): Html {
  return html`<div class="prefixed">
    <span class="prefix" aria-hidden="true">${prefix}</span>
    ${control}
  </div>`
}

function messageBelow(form: Form, name: string, label: string, id: string): Html | false {
  const message = form.fault?.fields[name]
  if (message === undefined) return false
  const text = sentence(withLabels(form, message, name, label))
  return html`<p id="${id}-refused" class="refused">${text}</p>`
}

/**
 * A message that names fields as the API does, for people: the field has its label, without what
 * the label adds in parentheses or after a comma; others lose their underscores.
 */
function withLabels({ schema }: Form, message: string, name: string, label: string): string {
  const [short = label] = label.split(/ \(|[,.] /)
  const named = message.startsWith(`${name} `) ? short + message.slice(name.length) : message
  const others = new Set(Object.keys(schema?.properties ?? {}))
  return named.replaceAll(/[a-z0-9_]+/g, (word) => {
    return others.has(word) ? word.replaceAll('_', ' ') : word
  })
}

/** Whether a field was refused, and what describes it. The first refused field gets the focus. */
function stateOf(
  { fault }: Form,
  name: string,
  id: string,
  hint?: Attributes[string],
): Attributes {
  const refused = Object.keys(fault?.fields ?? {})
  if (!refused.includes(name)) return { 'aria-describedby': hint }
  return {
    'aria-invalid': 'true',
    'aria-describedby': hint === undefined ? `${id}-refused` : `${id}-refused ${hint}`,
    autofocus: refused[0] === name,
  }
}

function valueOf(form: Form, name: string): string {
  return form.typed?.[name] ?? String(limitsOf(form, name).default ?? '')
}

function limitsOf({ schema }: Form, name: string): Limits {
  const limits = (schema?.properties[name] ?? {}) as Limits
  return { ...limits.anyOf?.[0], ...limits }
}
