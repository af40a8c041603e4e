import { html, type Html, type Printable } from '../kernel/html.ts'
import { attributes, type Attributes } from './parts.ts'

/** A link to a page, to a part of one, or to a file. */
export interface Way extends Attributes {
  href: string
  label: string
}

/** A tab, whose page or part may be the one that is shown. */
export interface Tab extends Way {
  isCurrent: boolean
}

/**
 * Pages or parts of the same thing, one beside the other. They are links: each has an address, and
 * needs no script. The width of the bold label is reserved, so that no tab moves another one.
 */
export function tabs(label: string, ways: readonly Tab[]): Html {
  const links = ways.map(({ isCurrent, ...way }) => wayLink(way, isCurrent && 'page'))
  return html`<nav class="tabs" aria-label="${label}">${links}</nav>`
}

/**
 * What is seldom asked for, behind a button. It opens without script; the script closes it on
 * Escape and on a click elsewhere. A short form may stand in it as well.
 */
export function menu(
  label: Printable,
  items: readonly (Html | Way)[],
  own: Attributes = {},
): Html {
  const list = items.map((item) => {
    return html`<li>${'href' in item ? wayLink(item) : item}</li>`
  })
  return html`<details${attributes({ class: 'more-menu', ...own })}>
    <summary class="button">${label} <span aria-hidden="true">▾</span></summary>
    <ul class="panel">
      ${list}
    </ul>
  </details>`
}

function wayLink({ label, ...own }: Way, current: string | false = false): Html {
  const all = { ...own, 'aria-current': current, 'data-label': label }
  return html`<a${attributes(all)}>${label}</a> `
}
