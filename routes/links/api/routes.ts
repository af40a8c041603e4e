import Type from 'typebox'
import { wrongMethod } from '../../../kernel/fault.ts'
import { mountApi } from '../../../kernel/http/endpoint.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { faultReply, NOT_FOUND, refuse, UNAUTHORIZED } from '../faults.ts'
import type { LinksRoutes } from '../options.ts'
import { authenticate, FOR_ADMINS } from './endpoint.ts'
import { linkOperations } from './links.ts'
import { memberOperations } from './members.ts'
import { tagOperations } from './tags.ts'
import { tokenEndpoints } from '../tokens.ts'
import { allLinksEndpoints } from '../all-links.ts'
import { userEndpoints } from '../users.ts'

export const API = '/api/v1/'
const ADMIN = `${API}admin/`

/** links.md section 2, Config. */
export const Config = Type.Object({
  short_keyword: Type.String({ description: 'What comes before a slug, such as go in go/docs' }),
})

/** Every operation of the API (links.md section 4, decisions.md section 4). */
export function apiOperations(options: LinksRoutes): readonly Operation[] {
  return [
    {
      ...{ method: 'GET', path: '/api/v1/config', id: 'getConfig', tag: 'Config' },
      summary: 'Get what a client may know of this server; needs no token.',
      access: 'open',
      needsToken: false,
      replies: {
        200: { description: 'The configuration', schema: Config },
      },
      refusals: [],
      handle: () => jsonReply({ short_keyword: options.shortKeyword() }),
    },
    ...linkOperations(options),
    ...memberOperations(options),
    ...tagOperations(options),
    ...mountApi([...userEndpoints, ...allLinksEndpoints], options),
    ...mountApi(tokenEndpoints, options),
  ]
}

/**
 * What a path or a method leads to that the API has not: a stranger learns nothing but 401 there
 * (links.md section 5), whoever has a token learns 404, or 405 with the methods that there are. What is
 * below `admin/` says to nobody else what there is.
 */
export function missingOperation({ links }: LinksRoutes, allow: string | undefined): Route {
  return {
    method: 'GET',
    path: '/api/v1/(none)',
    access: 'open',
    async handle(context) {
      const caller = await authenticate(links, context)
      if (caller === undefined) return faultReply(UNAUTHORIZED, context)
      if (context.path.startsWith(ADMIN) && caller.role !== 'admin') {
        return refuse(FOR_ADMINS, context)
      }
      if (allow === undefined) return faultReply(NOT_FOUND, context)
      const detail = `this path answers ${allow} only`
      return faultReply({ ...wrongMethod(allow), detail }, context)
    },
  }
}
