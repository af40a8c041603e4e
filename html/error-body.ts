import { html, type Html } from '../kernel/html.ts'

/** A refused or failed request, for people. */
export interface ShownError {
  readonly status: number
  readonly title: string
  readonly detail: string
}

/** The body of a refused or failed request's page: what happened, and `ways` on. */
export function errorBody({ status, title, detail }: ShownError, ways: Html): Html {
  return html`<section class="panel error">
    <p class="error-status">${status}</p>
    <h1>${title}</h1>
    <p>${detail}</p>
    <p>${ways}</p>
  </section>`
}
