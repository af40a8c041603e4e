import { html, type Html } from '../kernel/html.ts'

/** Attributes of an element by name. `true` is one without a value; false and undefined are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** Attributes as HTML, each after a space. */
export function attributes(named: Attributes): readonly (Html | string)[] {
  return Object.entries(named).map(([name, value]) => {
    if (value === undefined || value === false) return ''
    return value === true ? html` ${name}` : html` ${name}="${value}"`
  })
}
