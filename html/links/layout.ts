import type { User } from '../../db/links/people/users.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page, View } from '../../kernel/http/view.ts'
import { capitalized } from '../form.ts'
import { contentView, layout, type ServiceLink } from '../layout.ts'
import { placesOf, type PlaceGroup } from '../palette.ts'
import { tabs } from '../ways.ts'

/** The viewer of a page; undefined: not signed in; null: unknown, as on the page of a fault. */
export type Viewer = Pick<User, 'email' | 'role'> | undefined | null

/** The name of the search in browsers; OpenSearch allows 16 characters. */
export const SEARCH_NAME = 'Go links'

const FOR_USERS = [
  { section: 'links', href: '/-/', label: 'My links' },
  { section: 'all', href: '/-/all', label: 'All links' },
  { section: 'new', href: '/-/new', label: 'New link' },
  { section: 'tags', href: '/-/tags', label: 'Tags' },
  { section: 'tokens', href: '/-/tokens', label: 'Tokens' },
  { section: 'help', href: '/-/help', label: 'Help' },
]
const FOR_ADMINS = [{ section: 'admin', href: '/-/admin/users', label: 'Admin' }]

const ACTIONS = [
  { href: '/-/health', label: 'See broken links' },
  { href: '/-/deleted', label: 'Restore a deleted link' },
  { href: '/-/own', label: 'Change several of my links' },
  { href: '/-/tokens', label: 'Create a token' },
  { href: '/-/docs/', label: 'Read the documentation' },
]
const ADMIN_ACTIONS = [
  { href: '/-/admin/users', label: 'Add a user' },
  { href: '/-/admin/links', label: 'See the links of everybody' },
  { href: '/-/admin/import', label: 'Import links' },
  { href: '/-/admin/usage', label: 'See usage' },
  { href: '/-/admin/missing', label: 'See names that no link has' },
]

/** The pages and actions that the palette offers to a user. */
export function linksPlaces(
  { role }: Pick<User, 'role'>,
  services: readonly ServiceLink[],
  text: string,
): readonly PlaceGroup[] {
  const actions = role === 'admin' ? [...ACTIONS, ...ADMIN_ACTIONS] : ACTIONS
  return placesOf({ service: 'links', services, navigation: navigationOf(role) }, actions, text)
}

/** The pages that a user with this role may open. */
function navigationOf(role: User['role']) {
  return role === 'admin' ? [...FOR_USERS, ...FOR_ADMINS] : FOR_USERS
}

/**
 * What stands around each page of the links service. The navigation has the pages that the viewer
 * may open. Only people who are signed in see the addresses of the other services.
 */
export function linksFrame(page: Page, viewer: Viewer, services: readonly ServiceLink[]): Html {
  const site = {
    service: 'links',
    services: viewer ? services : [],
    home: '/-/',
    assets: '/-/assets',
    tagline: 'short links, shared',
    apiDocs: '/api/docs/',
    ...(viewer?.role === 'admin' && { audit: '/-/admin/audit' }),
    ...(viewer && { palette: '/-/palette', docs: '/-/docs/' }),
    navigation: viewer ? navigationOf(viewer.role) : [],
    aside: viewerLine(viewer),
    head: html`<link
      rel="search"
      type="application/opensearchdescription+xml"
      title="${SEARCH_NAME}"
      href="/-/opensearch.xml"
    />`,
  }
  return layout(site, page)
}

/** A part of a page that htmx asks for by itself; at its address it is a small page. */
export function partView(title: string, content: Html): View {
  return contentView({ title, section: 'none', above: html`<h1>${title}</h1>` }, content)
}

/** The way between the pages of admins. */
export function adminTabs(current: (typeof ADMIN_PAGES)[number]): Html {
  const pages = ADMIN_PAGES.map((name) => {
    return { href: `/-/admin/${name}`, label: capitalized(name), isCurrent: name === current }
  })
  return tabs('Admin', pages)
}

const ADMIN_PAGES = ['users', 'links', 'import', 'usage', 'missing', 'audit'] as const

function viewerLine(viewer: Viewer): Html {
  if (viewer === null) return html``
  if (viewer === undefined) return html`<p class="viewer">Not signed in</p>`
  const { email, role } = viewer
  return html`<p class="viewer">
    <span class="hidden">Signed in as</span> <bdi title="${email}">${email}</bdi>
    ${role === 'admin' && html`<span class="badge">admin</span>`}
  </p>`
}
