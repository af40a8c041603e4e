import { html, type Html } from '../kernel/html.ts'

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
