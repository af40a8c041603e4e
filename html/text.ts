import { html, type Html } from '../kernel/html.ts'

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
