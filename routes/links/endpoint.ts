import Type from 'typebox'
import type { User } from '../../db/links/users.ts'
import { endpointsOf } from '../../kernel/http/endpoint.ts'
import { isUuid } from '../../kernel/text.ts'
import { parsed } from '../../kernel/validate.ts'
import { replyTo } from './faults.ts'
import type { LinksRoutes } from './options.ts'

/** The endpoints of the links service; 503 while the database is out of reach. */
export const { api, page, form } = endpointsOf<LinksRoutes, User | undefined>({
  bodyLimit: 64 * 1024,
  alwaysRefuses: [503],
  faultReply: replyTo,
})

/** An id in a path, in lower case as ids are shown. */
export const Id = parsed(Type.String({ format: 'uuid' }), 'in the path must be a UUID', (given) =>
  typeof given === 'string' && isUuid(given) ? given.toLowerCase() : undefined,
)
