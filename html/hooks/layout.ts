import { type Html, html } from '../../kernel/html.ts'
import { errorPage, layout, type Page, type ShownFault } from '../layout.ts'

const SITE = {
  home: '/',
  assets: '/assets',
  tagline: 'webhooks, caught and kept',
  navigation: [
    { section: 'dashboard', href: '/', label: 'Dashboard' },
    { section: 'log', href: '/log', label: 'Log' },
    { section: 'providers', href: '/providers', label: 'Providers' },
    { section: 'settings', href: '/settings', label: 'Settings' },
  ],
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
