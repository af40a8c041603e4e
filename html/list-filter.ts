import { html, type Html } from '../kernel/html.ts'

/** A search or filter above a list. */
export interface ListFilterForm {
  /** What it filters, for people who can't see the page. */
  readonly label: string
  readonly path: string
  /** Id of the element that is replaced. */
  readonly results: string
  /** When htmx asks, beside the button; a choice in a list when absent. */
  readonly trigger?: string
  readonly fields: Html
}

/**
 * An ordinary GET form: htmx replaces the results by the fragment that the same URL answers to it, and
 * puts that URL into the address bar.
 */
export function listFilter({ label, path, results, trigger, fields }: ListFilterForm): Html {
  return html`<form
    class="filter"
    role="search"
    aria-label="${label}"
    method="get"
    action="${path}"
    hx-get="${path}"
    hx-target="#${results}"
    hx-swap="outerHTML"
    hx-push-url="true"
    hx-trigger="submit, ${trigger ?? 'change target:select'}"
    hx-sync="this:replace"
  >
    ${fields}
  </form>`
}
