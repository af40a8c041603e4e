import { html, type Html } from '../kernel/html.ts'
import { attributes } from './parts.ts'

const FENCE = /^\s*(?:```|~~~)/
const ITEM = /^\s*(?:[-*+•]|(?<number>\d{1,9})[.)])\s+(?<text>\S.*)$/
const HEADING = /^#{1,6}\s/

/** Lines that have not become blocks yet. */
interface Lines {
  list: readonly string[]
  at: number
}

/**
 * The little of Markdown that models use, as HTML: paragraphs, lists, code and bold. A heading is a
 * bold line. Nothing becomes a link or an image: who wrote a text may have read a stranger's.
 */
export function markdown(text: string): Html {
  const lines = { list: text.replaceAll('\r\n', '\n').split('\n'), at: 0 }
  const blocks: Html[] = []
  while (lines.at < lines.list.length) {
    const line = lines.list[lines.at] ?? ''
    if (line.trim() === '') lines.at++
    else if (FENCE.test(line)) blocks.push(codeBlock(lines))
    else if (ITEM.test(line)) blocks.push(list(lines))
    else if (HEADING.test(line)) blocks.push(heading(lines))
    else blocks.push(paragraph(lines))
  }
  return html`<div class="markdown">${blocks}</div>`
}

/** Takes lines as long as they are wanted. */
function take(lines: Lines, isWanted: (line: string) => boolean): readonly string[] {
  const from = lines.at
  while (lines.at < lines.list.length && isWanted(lines.list[lines.at] ?? '')) lines.at++
  return lines.list.slice(from, lines.at)
}

function isPlain(line: string): boolean {
  return line.trim() !== '' && !FENCE.test(line) && !ITEM.test(line) && !HEADING.test(line)
}

function paragraph(lines: Lines): Html {
  return html`<p>${inline(take(lines, isPlain).join('\n'))}</p>`
}

function heading(lines: Lines): Html {
  const line = lines.list[lines.at++] ?? ''
  const title = line.replace(/^#+/, '').trim().replace(/ #+$/, '')
  return html`<p><strong>${inline(title)}</strong></p>`
}

/** Code up to the fence that ends it, or to the end of the text. */
function codeBlock(lines: Lines): Html {
  lines.at++
  const code = take(lines, (line) => !FENCE.test(line)).join('\n')
  lines.at++
  return html`<pre class="payload" tabindex="0"><code>${code}</code></pre>`
}

/** Items in a row, with the lines that go on with them. A list within a list is part of it. */
function list(lines: Lines): Html {
  const first = ITEM.exec(lines.list[lines.at] ?? '')?.groups?.['number']
  const isNumbered = first !== undefined
  const items: Html[] = []
  for (;;) {
    const { text = '', number } = ITEM.exec(lines.list[lines.at] ?? '')?.groups ?? {}
    if (text === '' || (number !== undefined) !== isNumbered) break
    lines.at++
    const item = [text, ...take(lines, isPlain).map((line) => line.trim())].join('\n')
    items.push(html`<li>${inline(item)}</li>`)
    const blank = take(lines, (line) => line.trim() === '').length
    if (blank > 0 && !ITEM.test(lines.list[lines.at] ?? '')) break
  }
  if (!isNumbered)
    return html`<ul>
      ${items}
    </ul>`
  return html`<ol${attributes({ start: first === '1' ? undefined : Number(first) })}>${items}</ol>`
}

/** A text with its code and bold words. */
function inline(text: string): readonly (Html | string)[] {
  const parts: (Html | string)[] = []
  let at = 0
  for (const { 0: all, 1: code, 2: bold, index } of text.matchAll(
    /`([^`\n]+)`|\*\*(?=\S)([^*\n]+)\*\*/g,
  )) {
    parts.push(text.slice(at, index))
    parts.push(
      bold === undefined ? html`<code>${code}</code>` : html`<strong>${inline(bold)}</strong>`,
    )
    at = index + all.length
  }
  return [...parts, text.slice(at)]
}
