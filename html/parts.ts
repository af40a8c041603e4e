import { html, type Html, type Printable } from '../kernel/html.ts'
import { attributes, type Attributes } from './attributes.ts'

/** Rows as cards, or what stands in their place when there are none. */
export function cards(list: readonly Html[], whenEmpty: Printable): Html {
  return list.length === 0 ? emptyState(whenEmpty) : html`<div class="cards">${list}</div>`
}

/** What stands in the place of a list that has nothing. */
export function emptyState(text: Printable): Html {
  return html`<p class="panel empty">${text}</p>`
}

/** What opens on a click, such as a form that one stray click must not send. */
export function disclosed(
  summary: Printable,
  content: Printable,
  { summaryId, ...own }: Attributes & { readonly summaryId?: string } = {},
): Html {
  return html`<details${attributes({ class: 'changes', ...own })}>
    <summary${attributes({ id: summaryId })}>${summary}</summary>
    ${content}
  </details>`
}

/**
 * A secret that was just created, with what to do with it. It gets the focus, so that neither eye nor
 * screen reader misses it. `what` is its name, such as "token". Without a secret it only says what was done.
 */
export function secretBox(
  title: Printable,
  { what, secret, id = `made-${what}` }: { what: string; secret: string | null; id?: string },
  more: Printable,
): Html {
  return html`<section
    id="made"
    class="panel made"
    tabindex="-1"
    autofocus
    aria-labelledby="made-title"
  >
    <h2 id="made-title">${title}</h2>
    ${
      secret !== null &&
      html`<p><strong>Copy it now: it is shown only this once.</strong></p>
        ${copyBox(id, what, secret)}`
    }
    ${more}
  </section>`
}

/** A note that something was done. */
export function saved(text: Printable, own: Attributes = {}): Html {
  return html`<p${attributes({ class: 'saved', role: 'status', ...own })}>${text}</p>`
}

/** The way to the next entries of a list; nothing when there are none. */
export function nextLink(href: string | undefined, text: string): Html | false {
  return href !== undefined && html`<p class="more"><a href="${href}">${text}</a></p>`
}

/**
 * Text to be copied, with a button that shows only where script runs. `id` is unique on the page;
 * `what` completes the button's name, as in "Copy token".
 */
export function copyBox(id: string, what: string, text: string): Html {
  return html`<div class="copy-box">
    <pre id="${id}" tabindex="0" aria-label="${what}"><code>${text}</code></pre>
    <button class="js-only" type="button" data-copy="${id}">
      Copy <span class="hidden">${what}</span>
    </button>
  </div>`
}

/** A term and its value in a list of facts (`<dl class="facts">`); null is shown as "none". */
export function fact(term: string, value: Printable): Html {
  return html`<div>
    <dt>${term}</dt>
    <dd>${value ?? html`<span class="muted">none</span>`}</dd>
  </div>`
}

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
