import { html, type Html, type Printable } from '../kernel/html.ts'

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

/** A table of events or the like. The roles keep it a table for assistive tools where its cells are stacked. */
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
  pairs: readonly (readonly [name: string, value: Printable])[],
): Html {
  return html`<table class="pairs">
    <caption class="hidden">
      ${caption}
    </caption>
    <thead>
      <tr>
        <th scope="col">${head}</th>
        <th scope="col">Value</th>
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
