import * as Type from '../../kernel/schema.ts'
import { linksPlaces } from '../../html/links/layout.ts'
import { shortName } from '../../html/links/names/links/links.ts'
import { linksOf } from '../../html/links/people/users.ts'
import { MAX_PLACES, paletteView } from '../../html/palette.ts'
import { html } from '../../kernel/html.ts'
import { peopleCompletions } from '../../services/links/names/links/completions.ts'
import { mayRead } from '../../services/links/names/links/links.ts'
import { ListFilter, NO_FILTER } from '../../services/links/names/lists/filter.ts'
import { searchLinks } from '../../services/links/names/lists/lists.ts'
import type { Caller } from '../../services/links/people/users/groups.ts'
import { signedIn } from './access.ts'
import { page, shortLinks, type LinksRoutes } from './kit.ts'

const PATH = '/-/palette'

/** What the palette finds: pages and actions, the links that the visitor may see, and for admins users. */
export const paletteEndpoints = [
  page({
    path: PATH,
    access: signedIn,
    query: Type.Object({ q: ListFilter.properties.q }),
    async answer({ app, caller, now, query: { q: text } }) {
      const places = linksPlaces(caller, app.services(), text)
      const links = text === '' ? [] : await findLinks(app, caller, text, now)
      const people =
        text === '' || caller.role !== 'admin' ? [] : await findPeople(app, caller, text)
      const found = [
        { title: 'People', places: people },
        { title: 'Links', places: links },
      ]
      return paletteView(PATH, text, [...places, ...found])
    },
  }),
]

/** Each leads to the links of that user, where they can be moved. */
async function findPeople({ links: { db } }: LinksRoutes, caller: Caller, text: string) {
  const emails = await peopleCompletions(db, caller, text, { groups: false })
  return emails.slice(0, MAX_PLACES).map((email) => ({
    href: linksOf(email),
    label: html`<bdi>${email}</bdi>`,
    detail: 'links of this user',
  }))
}

async function findLinks(app: LinksRoutes, visitor: Caller, text: string, now: Date) {
  const short = shortLinks(app)
  const search = { filter: { ...NO_FILTER, q: text }, visitor, among: 'all' } as const
  const tools = { db: app.links.db, short, now }
  const { links } = await searchLinks(tools, search, undefined, MAX_PLACES)
  return links.map((link) => {
    const { id, slug, title } = link
    // Who may only visit a link gets its preview.
    const href = mayRead(link, visitor) ? `/-/links/${id}` : `/${slug}+`
    return { href, label: shortName(short, slug), detail: html`<bdi>${title}</bdi>` }
  })
}
