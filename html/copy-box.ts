import { html, type Html } from '../kernel/html.ts'

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
