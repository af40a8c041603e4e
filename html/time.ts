import { html, type Html } from '../kernel/html.ts'

/** An instant as text in UTC; the browser's script rewrites it into the reader's own time zone. */
export function timeTag(at: Date): Html {
  return html`<time datetime="${at.toISOString()}">${utcText(at)}</time>`
}

/** An instant in UTC to the second: `2026-05-04 08:30:00 UTC`. */
function utcText(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}
