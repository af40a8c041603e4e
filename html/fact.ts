import { html, type Html, type Printable } from '../kernel/html.ts'

/** A term and its value in a list of facts (`<dl class="facts">`); null is shown as "none". */
export function fact(term: string, value: Printable): Html {
  return html`<div>
    <dt>${term}</dt>
    <dd>${value ?? html`<span class="muted">none</span>`}</dd>
  </div>`
}
