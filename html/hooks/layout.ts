import type { Html } from '../../kernel/html.ts'
import { layout, type Page } from '../layout.ts'

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
