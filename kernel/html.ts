import { isList } from './json.ts'

const markup: unique symbol = Symbol('markup')

/**
 * Text that is safe to send as HTML. Only `html` and `trusted` make one, so JSON can't forge it.
 */
export interface Html {
  [markup]: string
}

/** What a template may interpolate: `false`, `null` and `undefined` print nothing. */
export type Printable =
  | Html
  | string
  | number
  | bigint
  | false
  | null
  | undefined
  | readonly Printable[]

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for an element's content or a quoted attribute's value. */
function escapeHtml(text: string) {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
}

/**
 * Template tag: escapes every interpolation but values that are `Html` already; lists are joined.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Printable[]): Html {
  let text = strings[0] ?? ''
  for (let i = 0; i < values.length; i++) text += print(values[i]) + (strings[i + 1] ?? '')
  return { [markup]: text }
}

/** Marks text as HTML without escaping it; only for constants of this program. */
export function trusted(text: string): Html {
  return { [markup]: text }
}

/** The text of a page or fragment, ready to be sent. */
export function render(page: Html): string {
  return page[markup]
}

function print(value: Printable) {
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'string') return escapeHtml(value)
  if (typeof value === 'number' || typeof value === 'bigint') return String(value)
  if (isList(value)) {
    let text = ''
    for (const item of value) text += print(item)
    return text
  }
  return value[markup]
}
