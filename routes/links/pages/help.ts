import { helpPage } from '../../../html/links/help.ts'
import { htmlReply } from '../../../kernel/reply.ts'
import type { Route } from '../../../kernel/router.ts'
import type { LinksRoutes } from '../options.ts'
import { shortLinks } from './links.ts'
import { pageRoute } from './page.ts'

/** `/-/help`. */
export function helpRoute(options: LinksRoutes): Route {
  return pageRoute(options, {
    ...{ method: 'GET', path: '/-/help' },
    answer: ({ visitor }) => Promise.resolve(htmlReply(helpPage(visitor, shortLinks(options)))),
  })
}
