import { tagFragment, tagPage, tagsFragment, tagsPage } from '../../../html/links/tags.ts'
import { queryOf } from '../../../kernel/http/context.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { isRefusal } from '../../../services/links/refusal.ts'
import { linksTagged, tagsFor } from '../../../services/links/tags.ts'
import { pageOrFragment } from '../../page-answers.ts'
import { readPage } from '../api/page.ts'
import { shortLinks, type LinksRoutes } from '../options.ts'
import { listed } from './next.ts'
import { pageRoute } from './page.ts'

/** `/-/tags` and `/-/tags/{slug}`: only what the visitor may see, and how much of it. */
export function tagPages(options: LinksRoutes): readonly Route[] {
  const { db } = options.links
  const path = '/-/tags'
  return [
    pageRoute(options, {
      ...{ method: 'GET', path },
      async answer({ context, visitor }) {
        const asked = readPage(context)
        if ('status' in asked) return asked
        const { after, limit } = asked
        const rows = await tagsFor(db, visitor, after, limit + 1)
        const query = queryOf(context)
        const { shown: tags, next } = listed(rows, limit, ({ slug }) => slug, path, query)
        const view = { tags, next }
        return pageOrFragment(
          context,
          () => tagsPage(visitor, view),
          () => tagsFragment(view),
        )
      },
    }),
    pageRoute(options, {
      ...{ method: 'GET', path: `${path}/:slug` },
      async answer({ context, visitor, param }) {
        const asked = readPage(context)
        if ('status' in asked) return asked
        const { after, limit } = asked
        const tag = param('slug')
        const rows = await linksTagged(db, visitor, tag, after, limit + 1)
        // It says no more than that: a tag that others keep to themselves is like one that is not there.
        if (isRefusal(rows)) return rows
        const here = `${path}/${encodeURIComponent(tag)}`
        const query = queryOf(context)
        const { shown: links, next } = listed(rows, limit, ({ slug }) => slug, here, query)
        const view = { tag, links, next, short: shortLinks(options), viewer: visitor }
        return pageOrFragment(
          context,
          () => tagPage(view),
          () => tagFragment(view),
        )
      },
    }),
  ]
}
