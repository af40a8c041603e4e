import { html, type Html } from '../../kernel/html.ts'

/** A list that goes on elsewhere. */
export interface More {
  /** Id of the table's body, whose rows the next page's are added to. */
  readonly rows: string
  /** Address of the next page, or null on the last one. */
  readonly next: string | null
}

/**
 * The way to a list's next page: htmx adds its rows, without script it is a page of its own. Both
 * states bear the same id: htmx gives the focus back to it, also when the last page came.
 */
export function moreLink({ rows, next }: More): Html {
  const id = `${rows}-more`
  if (next === null) {
    return html`<p id="${id}" class="more">
      <span id="${id}-link" class="muted" tabindex="-1">That is all.</span>
    </p>`
  }
  return html`<p id="${id}" class="more">
    <a
      id="${id}-link"
      href="${next}"
      hx-get="${next}"
      hx-target="#${rows}"
      hx-swap="beforeend"
      hx-select="#${rows} > tr"
      hx-select-oob="#${id}"
      >Show more</a
    >
  </p>`
}
