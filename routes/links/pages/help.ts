import { helpPage } from '../../../html/links/help.ts'
import { htmlReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { shortLinks, type LinksRoutes } from '../options.ts'
import { pageRoute } from './page.ts'

/** `/-/help`. */
export function helpRoute(options: LinksRoutes): Route {
  return pageRoute(options, {
    ...{ method: 'GET', path: '/-/help' },
    answer: ({ visitor }) => Promise.resolve(htmlReply(helpPage(visitor, shortLinks(options)))),
  })
}
