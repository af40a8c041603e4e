import { html, type Html } from '../kernel/html.ts'

/** A long name that a narrow place may break after `:`, `.` and `/` rather than within a word. */
export function breakable(name: string): Html {
  const [first = '', ...rest] = name.split(/(?<=[:./])/)
  return html`${first}${rest.map((part) => html`<wbr />${part}`)}`
}
