import { html, type Html } from '../kernel/html.ts'
import { layout } from './layout.ts'

/** The page of a refused or failed request: what happened, and a way on. */
export function errorPage(error: { status: number; title: string; detail: string }): Html {
  return layout({
    title: `${error.status} ${error.title}`,
    section: 'none',
    body: html`<section class="panel error">
      <p class="error-status">${error.status}</p>
      <h1>${error.title}</h1>
      <p>${error.detail}</p>
      <p><a href="/">Go to the dashboard</a> or <a href="/log">open the log</a>.</p>
    </section>`,
  })
}
