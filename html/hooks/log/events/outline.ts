import { html, type Html } from '../../../../kernel/html.ts'
import type { OutlineLine } from '../../../../services/hooks/log/events/outline.ts'

/** Lines that fold without script; all are open. */
export function outline(lines: readonly OutlineLine[]): Html {
  return html`<div class="outline" tabindex="0" role="group" aria-label="Payload">
    ${list(lines)}
  </div>`
}

function list(lines: readonly OutlineLine[]): Html {
  return html`<ul>
    ${lines.map(item)}
  </ul>`
}

function item({ pieces, below }: OutlineLine): Html {
  const line = pieces.map(({ kind, text }) => html`<span class="${kind}">${text}</span>`)
  if (below.length === 0) return html`<li>${line}</li>`
  return html`<li>
    <details open>
      <summary>${line}</summary>
      ${list(below)}
    </details>
  </li>`
}
