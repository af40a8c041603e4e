import type { User } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { layout, type Page } from '../layout.ts'

/** Who looks at a page; undefined: nobody is signed in; null: nobody asked, as on the page of a fault. */
export type Viewer = Pick<User, 'email' | 'role'> | undefined | null

const FOR_USERS = [
  { section: 'links', href: '/-/', label: 'My links' },
  { section: 'all', href: '/-/all', label: 'All links' },
  { section: 'new', href: '/-/new', label: 'New link' },
  { section: 'tags', href: '/-/tags', label: 'Tags' },
  { section: 'tokens', href: '/-/tokens', label: 'Tokens' },
]
const FOR_ADMINS = [{ section: 'admin', href: '/-/admin/users', label: 'Users' }]

/** A page of the links service; its navigation has what the viewer may open. */
export function linksPage(viewer: Viewer, page: Page): Html {
  const navigation = [...(viewer ? FOR_USERS : []), ...(viewer?.role === 'admin' ? FOR_ADMINS : [])]
  const aside =
    viewer === null ? html`` : html`<p class="viewer">${viewer?.email ?? 'not signed in'}</p>`
  const site = {
    home: '/-/',
    assets: '/-/assets',
    tagline: 'short links, shared',
    navigation,
    aside,
  }
  return layout(site, page)
}
