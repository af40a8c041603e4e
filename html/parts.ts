import { html, type Html, type Printable } from '../kernel/html.ts'

/**
 * Attributes of an element by name. `true` is one without a value; false and undefined are left
 * out.
 */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

/** Attributes as HTML, each after a space. */
export function attributes(named: Attributes): readonly (Html | string)[] {
  return Object.entries(named).map(([name, value]) => {
    if (value === undefined || value === false) return ''
    return value === true ? html` ${name}` : html` ${name}="${value}"`
  })
}

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
 * A secret that was just created, with what to do with it. It gets the focus, so that neither eye
 * nor screen reader misses it. `what` is its name, such as "token". Without a secret it only says
 * what was done.
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

/** A long text as it is, such as a payload; it scrolls. */
export function longText(label: string, text: string): Html {
  return html`<pre class="payload" tabindex="0" aria-label="${label}"><code>${text}</code></pre>`
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

/** An instant as text in UTC; the browser's script rewrites it into the reader's own time zone. */
export function timeTag(at: Date): Html {
  return html`<time datetime="${at.toISOString()}">${utcText(at)}</time>`
}

/** An instant in UTC to the second: `2026-05-04 08:30:00 UTC`. */
function utcText(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

const UNITS = ['KB', 'MB', 'GB'] as const

/** A number of bytes, short; the exact number is its title. */
export function sizeTag(bytes: number): Html {
  return html`<span title="${bytes} bytes">${sizeText(bytes)}</span>`
}

/** `512 B`, `2.1 KB`, `25 MB`: multiples of 1024, one decimal place below ten. */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  let value = bytes
  let unit: string = 'B'
  for (const next of UNITS) {
    // 1023.6 KB would be printed as "1024 KB"; rounding first keeps the unit right.
    if (Math.round(value) < 1024) break
    value /= 1024
    unit = next
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`
}

/** A long name that a narrow place may break after `:`, `.` and `/` rather than within a word. */
export function breakable(name: string): Html {
  const [first = '', ...rest] = name.split(/(?<=[:./])/)
  return html`${first}${rest.map((part) => html`<wbr />${part}`)}`
}

/** A table whose rows the styles turn into small cards on a narrow screen. */
export interface ListTable {
  /** Of the body, which the browser's script and htmx add rows to. */
  readonly bodyId: string
  /** What the table is, for those who don't see the page around it. */
  readonly caption: string
  /** A heading each; the one of numbers says so. */
  readonly columns: readonly (string | { readonly number: string })[]
  /** Further class of the table. */
  readonly kind?: string
  readonly rows: Printable
}

/**
 * A table of events or the like. The roles keep it a table for assistive tools where its cells are
 * stacked.
 */
export function listTable({ bodyId, caption, columns, kind, rows }: ListTable): Html {
  return html`<table class="events ${kind}" role="table">
    <caption class="hidden">
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) =>
          typeof column === 'string'
            ? html`<th role="columnheader" scope="col">${column}</th>`
            : html`<th role="columnheader" scope="col" class="number">${column.number}</th>`,
        )}
      </tr>
    </thead>
    <tbody id="${bodyId}" role="rowgroup">
      ${rows}
    </tbody>
  </table>`
}

/** A table of names and their values. */
export function pairsTable(
  caption: string,
  head: string,
  pairs: readonly (readonly [name: Printable, value: Printable])[],
  valueHead = 'Value',
): Html {
  return html`<table class="pairs">
    <caption class="hidden">
      ${caption}
    </caption>
    <thead>
      <tr>
        <th scope="col">${head}</th>
        <th scope="col">${valueHead}</th>
      </tr>
    </thead>
    <tbody>
      ${pairs.map(
        ([name, value]) =>
          html`<tr>
            <th scope="row">${name}</th>
            <td>${value}</td>
          </tr>`,
      )}
    </tbody>
  </table>`
}
