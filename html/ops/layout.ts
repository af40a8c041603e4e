import { html, type Html } from '../../kernel/html.ts'
import { layout, type Page } from '../layout.ts'

const SITE = {
  home: '/',
  assets: '/assets',
  tagline: 'an agent that looks after services',
  apiDocs: '/api/docs/',
  navigation: [
    { section: 'dashboard', href: '/', label: 'Dashboard' },
    { section: 'sessions', href: '/sessions', label: 'Sessions' },
    { section: 'events', href: '/events', label: 'Events' },
    { section: 'alerts', href: '/alerts', label: 'Alerts' },
    { section: 'memories', href: '/memories', label: 'Memories' },
    { section: 'cooldowns', href: '/cooldowns', label: 'Cooldowns' },
    { section: 'config', href: '/config', label: 'Config' },
  ],
  head: html`<link rel="stylesheet" href="/assets/ops.css" />
    <script src="/assets/ops.js" type="module"></script>`,
}

/** A page of the ops service. */
export function opsPage(page: Page): Html {
  return layout(SITE, page)
}
