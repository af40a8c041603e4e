import { type Html, html } from '../../kernel/html.ts'
import { entriesOf, errorPage, layout, type Page, type ShownFault } from '../layout.ts'

const SITE = {
  home: '/',
  assets: '/assets',
  tagline: 'webhooks, caught and kept',
  navigation: entriesOf('dashboard', 'log', 'providers', 'settings'),
}

/** A page of the hooks service. */
export function hooksPage(page: Page): Html {
  return layout(SITE, page)
}

/** The page of a refused or failed request. */
export function hooksErrorPage(fault: ShownFault): Html {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/log">open the log</a>.`
  return hooksPage(errorPage(fault, ways))
}
