import { html, type Html } from '../../kernel/html.ts'
import { errorBody, layout, type Page, type ShownError } from '../layout.ts'

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

/** The page of a refused or failed request. */
export function opsErrorPage(error: ShownError): Html {
  const ways = html`<a href="/">Go to the dashboard</a> or <a href="/sessions">to the sessions</a>.`
  return opsPage({
    title: `${error.status} ${error.title}`,
    section: 'none',
    body: errorBody(error, ways),
  })
}
