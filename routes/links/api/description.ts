import Type from 'typebox'
import { Link, Owner, Share, Tag } from '../../../db/links/rows.ts'
import { Token } from '../../../db/links/tokens.ts'
import { User } from '../../../db/links/users.ts'
import type { ApiDescription, ReplyDescription } from '../../../kernel/openapi.ts'
import { STATUS } from '../../../services/links/faults.ts'
import { CreatedToken, NewToken } from '../../../services/links/tokens.ts'
import { LinkCreation, LinkUpdate } from '../../../services/links/link-input.ts'
import type { LinksRoutes } from '../options.ts'
import { pageOf } from './page.ts'
import { apiOperations, Config } from './routes.ts'

/** links.md section 2, error body. */
const ErrorBody = Type.Object({
  error: Type.String({ description: 'What is wrong, for people' }),
  code: Type.String({ description: 'What is wrong, for programs' }),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'Something in the path, the query or the body is not as it must be',
  401: 'No valid token was sent',
  403: 'The caller, or the token by its scope, may not do this',
  404: 'There is no such thing, or none that the caller may know of',
  409: 'It is taken, already so, or the last of its kind',
  412: 'The link is in another version than If-Match names, and nothing was changed',
  413: 'The body is too large',
  415: 'The body is not said to be JSON',
  500: 'It failed, and nothing was changed',
  503: 'The database is out of reach, and nothing was changed; try again shortly',
}

/** What the document of the API says (links.md, decisions.md section 4). */
export function describeApi(options: LinksRoutes): Omit<ApiDescription, 'servers'> {
  return {
    title: 'Gatehouse links',
    version: options.version,
    description:
      'Short links: make, read, change and share them. A list ends where next_cursor is null.',
    tags: {
      Links: 'Short links and where they lead',
      Owners: 'Who may change a link',
      Shares: 'Who else may read a link, and follow it when it is secure',
      Tags: 'Tags of the links that the caller may see',
      Users: "The caller's own profile",
      Tokens: "The caller's own API tokens",
      Admin: 'For admins only',
      Config: 'What a client may know without a token',
    },
    operations: apiOperations(options),
    schemas: {
      ...{ Link, LinkCreation, LinkUpdate, LinkPage: pageOf('links', Link) },
      ...{ Owner, Share, Tag, TagPage: pageOf('tags', Tag), User, UserPage: pageOf('users', User) },
      ...{ Token, TokenRequest: NewToken, MadeToken: CreatedToken, Config, Error: ErrorBody },
    },
    refusals: Object.fromEntries(
      Object.entries(REFUSALS).map(([status, text]) => [status, refusalOf(Number(status), text)]),
    ),
    tokens: 'A token of the tokens page, POST /api/v1/tokens or `gatehouse token create EMAIL`',
  }
}

function refusalOf(status: number, description: string): ReplyDescription {
  const codes = Object.entries(STATUS).filter(([, own]) => own === status)
  const ofStatus = Type.Object({ code: Type.Enum(codes.map(([code]) => code)) })
  return { description, schema: Type.Intersect([ErrorBody, ofStatus]) }
}
