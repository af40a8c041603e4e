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

/** Rows as cards, or the text of an empty list. */
export function cards(list: readonly Html[], whenEmpty: string, way?: Html): Html {
  return list.length === 0 ? emptyState(whenEmpty, way) : cardList(list)
}

export function cardList(list: readonly Html[]): Html {
  return html`<div class="cards">${list}</div>`
}

/** What stands in the place of a list that has nothing, and what may be done about it. */
export function emptyState(text: Printable, way?: Printable): Html {
  if (way === undefined) return html`<p class="panel empty">${text}</p>`
  return html`<div class="panel empty">
    <p><strong>${text}</strong></p>
    ${way}
  </div>`
}

/** What opens on a click, such as a form that one stray click must not send. */
export function disclosed(
  summary: Printable,
  content: Printable,
  { summaryId, ...own }: Attributes & { summaryId?: string } = {},
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
      html`<p>
          <strong>Copy it now, before you leave or reload this page: it is shown once.</strong>
        </p>
        ${copyBox(id, what, secret)}`
    }
    ${more}
  </section>`
}

/** A part of a page with its heading; `beside` stands at the end of the heading's line. */
export function section(
  headingId: string,
  title: Printable,
  content: Printable,
  own: Attributes = {},
  beside?: Printable,
): Html {
  const heading = html`<h2 id="${headingId}">${title}</h2>`
  return html`<section${attributes({ ...own, 'aria-labelledby': headingId })}>
    ${beside === undefined ? heading : html`<div class="title-line">${heading} ${beside}</div>`}
    ${content}
  </section>`
}

/** A note that something was done. */
export function saved(text: Printable, own: Attributes = {}): Html {
  return html`<p${attributes({ class: 'saved', role: 'status', ...own })}>${text}</p>`
}

/** The link to the next entries of a list; nothing on the last page. */
export function nextLink(href: string | undefined, text: string): Html | false {
  return href !== undefined && html`<p class="more"><a href="${href}">${text}</a></p>`
}

/**
 * Text to be copied, with a button that shows only where script runs. `id` is unique on the page;
 * `what` completes the button's name, as in "Copy token".
 */
export function copyBox(id: string, what: string, text: Printable): Html {
  return html`<div class="copy-box">
    <pre id="${id}" tabindex="0" aria-label="${what}"><code>${text}</code></pre>
    ${copyButton(id, what)}
  </div>`
}

/** The button that copies the text of the element with this id; it shows only where script runs. */
export function copyButton(id: string, what: string): Html {
  const label = html`${COPY_ICON}<span class="hidden">Copy ${what}</span>`
  return button(label, { class: 'icon js-only', title: 'Copy', 'data-copy': id })
}

/** The same with its name in sight, among other buttons. */
export function copyAction(id: string, what: string): Html {
  const label = html`${COPY_ICON}<span class="hidden">Copy ${what}</span>
    <span aria-hidden="true">Copy ${what}</span>`
  return button(label, { class: 'js-only', 'data-copy': id })
}

/** Two sheets, and the tick that takes their place once it was copied. */
const COPY_ICON = html`<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
  <path class="sheets" d="M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3" />
  <path class="tick" d="m3 8.5 3.5 3.5L13 4" />
</svg>`

/** A button, which does nothing without a script or another attribute. */
export function button(label: Printable, own: Attributes): Html {
  return html`<button${attributes({ type: 'button', ...own })}>${label}</button>`
}

/** A long text as it is, such as a payload; it scrolls. */
export function longText(label: string, text: string): Html {
  return html`<pre class="payload" tabindex="0" aria-label="${label}"><code>${text}</code></pre>`
}

/** Terms and their values; false leaves a term out, null is shown as "none". */
export function facts(named: Readonly<Record<string, Printable>>): Html {
  const shown = Object.entries(named).filter(([, value]) => value !== false)
  const items = shown.map(([term, value]) => {
    return html`<div>
      <dt>${term}</dt>
      <dd>${value ?? html`<span class="muted">none</span>`}</dd>
    </div>`
  })
  return html`<dl class="facts">${items}</dl>`
}

/** The few facts of a thing in a line, below its title; false leaves one out. */
export function factLine(known: readonly Printable[]): Html {
  const shown = known.filter((fact) => fact !== false)
  return html`<p class="fact-line">${shown.map((fact) => html`<span>${fact}</span> `)}</p>`
}

/** A list that goes on elsewhere. */
export interface More {
  /** Address of the next page, or null on the last one. */
  next: string | null
  label?: string
  /** What stands in the place of the link on the last page. */
  end?: string
  /** A text before the link. */
  note?: Printable
  /** False where there is no table that htmx could add rows to. */
  appends?: boolean
}

/**
 * The way to the next page of a list: htmx adds its rows to the body with the id `rows`, without
 * script it is a page of its own. Both states bear the same id: htmx gives the focus back to it,
 * also when the last page came.
 */
export function moreLink(rows: string, { next, note, appends = true, ...more }: More): Html {
  const { label = 'Show more', end = 'That is all.' } = more
  const id = `${rows}-more`
  const append = appends && {
    'hx-get': next ?? '',
    'hx-target': `#${rows}`,
    'hx-swap': 'beforeend',
    'hx-select': `#${rows} > tr`,
    'hx-select-oob': `#${id}`,
  }
  const link = { id: `${id}-link`, href: next ?? '', ...append }
  return html`<p id="${id}" class="more">
    ${note}
    ${
      next === null
        ? html`<span id="${id}-link" class="muted" tabindex="-1">${end}</span>`
        : html`<a${attributes(link)}>${label}</a>`
    }
  </p>`
}

/**
 * An instant in UTC to the second, `2026-05-04 08:30:00 UTC`. The browser's script makes it
 * relative, such as `5 minutes ago`, and keeps it so; `exact` becomes the reader's own time zone
 * instead. Either way the exact time and its zone are the title.
 */
export function timeTag(at: Date, kind: 'relative' | 'exact' = 'relative'): Html {
  const own = { datetime: at.toISOString(), 'data-exact': kind === 'exact' }
  return html`<time${attributes(own)}>${exactText(at)}</time>`
}

/** The same text where no element can stand, such as in an option of a list: it stays in UTC. */
export function exactText(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** A count with its noun: `63 links`. The plural is with an `s` where it is not given. */
export function countText(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`
}

/** Longer lists are not counted to their end: a page takes as long with a million rows. */
export const MAX_COUNT = 1_000

/** The same where rows are counted up to `MAX_COUNT`: `More than 1,000 links`. */
export function countUpTo(count: number, noun: string, plural?: string): string {
  if (count <= MAX_COUNT) return countText(count, noun, plural)
  return `More than ${countText(MAX_COUNT, noun, plural)}`
}

/** A count above or below a list. */
export function countLine(content: Printable): Html {
  return html`<p class="muted count">${content}</p>`
}

/** The link of a row that makes the whole row its target; other links in the row stay their own. */
export function rowLink(href: string, text: Printable, own: Attributes = {}): Html {
  return html`<a${attributes({ class: 'row-link', href, ...own })}>${text}</a>`
}

/** The first step of a user who has nothing yet. */
interface FirstStep {
  title: string
  text: Printable
  command: string
  /** Path of the page that it is on. */
  path: string
  /** The id of the part that becomes the real one, which the path answers to htmx. */
  target?: string
}

/**
 * What stands in the place of an empty home: the one command that begins. The page looks every few
 * seconds whether it worked, and becomes the real one.
 */
export function startHere({ title, text, command, path, target = 'main' }: FirstStep): Html {
  const own = { id: 'start-here', class: 'panel', ...polled(path, 3, target) }
  const content = html`<p>${text}</p>
    ${copyBox('start-command', 'command', command)}`
  return section('start-title', title, content, own)
}

/** An open page asks a path for the element with this id every few seconds. */
export function polled(path: string, seconds: number, id: string): Attributes {
  return renewed(path, id, `every ${seconds}s`)
}

/**
 * An open page asks a path for the element with this id after each such message of a stream. The
 * element `source` follows the stream.
 */
export function followed(path: string, message: string, source: string, id: string): Attributes {
  return renewed(path, id, `${message} from:#${source}`)
}

/** What a person has typed, opened or focused in the element stays. */
function renewed(path: string, id: string, trigger: string): Attributes {
  return {
    'hx-get': path,
    'hx-trigger': trigger,
    'hx-target': `#${id}`,
    'hx-select': `#${id}`,
    'hx-swap': 'outerMorph',
  }
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

/**
 * A long name that a narrow place may break after `:`, `.`, `/`, `@`, `?` and `&`, not within a
 * word. An e-mail address is broken after its `@` alone.
 */
export function breakable(name: string): Html {
  const isEmail = /^[^\s:/@]+@[^\s:/@]+$/.test(name)
  const [first = '', ...rest] = name.split(isEmail ? /(?<=@)/ : /(?<=[:./@?&])/)
  return html`${first}${rest.map((part) => html`<wbr />${part}`)}`
}

/** A table whose rows the styles turn into small cards on a narrow screen. */
interface ListTable {
  /** Of the body, which the browser's script and htmx add rows to. */
  bodyId: string
  /** What the table is, for those who don't see the page around it. */
  caption: string
  /** The headings; `number` marks that of a column of numbers. */
  columns: readonly (string | { number: string })[]
  /** Further class of the table. */
  kind?: string
  rows: readonly Html[]
  /** What stands in the place of the table when there are no rows. */
  whenEmpty?: Html
  /** Where the list goes on, if it may be longer than a page. */
  more?: More
}

/**
 * A table of events or the like. The roles keep it a table for assistive tools where its cells are
 * stacked.
 */
export function listTable(list: ListTable): Html {
  const { bodyId, caption, columns, kind, rows, whenEmpty, more } = list
  if (whenEmpty !== undefined && rows.length === 0) return whenEmpty
  return html`<div class="rows">
      <table class="list ${kind}" role="table">
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
      </table>
    </div>
    ${more && moreLink(bodyId, more)}`
}

/** A row of such a table. The cells are named by their classes. */
export function tableRow(own: Attributes, cells: Readonly<Record<string, Printable>>): Html {
  const list = Object.entries(cells).map(([kind, cell]) => {
    // The space keeps cells apart where the row is read as text.
    return html`<td role="cell" class="${kind}">${cell}</td> `
  })
  return html`<tr${attributes({ role: 'row', ...own })}>${list}</tr>`
}

/**
 * A table whose rows begin with their names, such as of variables and their values. The roles keep
 * it a table where its cells are stacked.
 */
export function namedRows(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Printable[])[],
  kind = 'pairs',
): Html {
  return html`<div class="rows">
    <table class="${kind}" role="table">
      <caption class="hidden">
        ${caption}
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          ${heads.map((head) => html`<th role="columnheader" scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(([name, ...values]) => {
          const cells = values.map((value) => html`<td role="cell">${value}</td>`)
          return html`<tr role="row">
            <th role="rowheader" scope="row">${name}</th>
            ${cells}
          </tr>`
        })}
      </tbody>
    </table>
  </div>`
}
