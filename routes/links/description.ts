import * as Type from '../../kernel/schema.ts'
import { DeletedLink } from '../../db/links/names/deleted.ts'
import { CheckedLink, Health } from '../../db/links/visits/health.ts'
import { Change } from '../../db/links/names/history.ts'
import { Link, Owner } from '../../db/links/names/links.ts'
import { MissingSlug } from '../../db/links/visits/missing.ts'
import { Share } from '../../db/links/names/members.ts'
import { Tag } from '../../db/links/names/tags.ts'
import { Token } from '../../db/links/people/tokens.ts'
import { Profile, User } from '../../db/links/people/users.ts'
import type { ApiDescription, Operation, ReplyDescription } from '../../kernel/openapi.ts'
import { STATUS } from '../../services/links/faults.ts'
import { CreatedToken, NewToken } from '../../services/links/people/tokens/changes.ts'
import { Stats } from '../../services/links/visits/stats.ts'
import { LinkUpdate, LinkRequest, NewSlug } from '../../services/links/names/links/input.ts'
import { ImportReport } from './transfer/transfer.ts'
import { changeList, checkedList, deletedList, linkList, tagList, userList } from './paging.ts'

/** links.md section 2, Config. */
export const Config = Type.Object({
  short_keyword: Type.String({ description: 'What comes before a slug, such as go in go/docs' }),
})

/** links.md section 2, error body. */
const ErrorBody = Type.Object({
  error: Type.String({ description: 'What is wrong, for people' }),
  code: Type.String({ description: 'What is wrong, for programs' }),
})

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'Something in the path, the query or the body is not valid',
  401: 'The request has no valid token',
  403: 'The caller, or the scope of the token, may not do this',
  404: 'It does not exist, or the caller may not see it',
  409: 'The slug is taken, the entry exists already, or the user is the last admin',
  412: 'The link has changed since the version in If-Match; nothing was changed',
  413: 'The body is too large',
  415: 'The body must be JSON',
  500: 'The request failed; nothing was changed',
  503: 'The database is out of reach; nothing was changed; try again shortly',
}

/** The API's document (links.md, decisions.md section 4). */
export function describeApi(
  version: string,
  operations: readonly Operation[],
): Omit<ApiDescription, 'servers'> {
  return {
    title: 'Gatehouse links',
    version,
    description:
      'Short links: create, read, change and share them. A list ends where next_cursor is null.',
    tags: {
      Links: 'Short links and where they lead',
      History: 'Who changed what of a link, and the way back',
      'Deleted links': 'Links that can be restored',
      Health: 'Whether the addresses of links are still there',
      Owners: 'Who may change a link',
      Shares: 'Who else may read a link, and follow it when it is secure',
      Tags: 'Tags of the links that the caller may see',
      Users: "The caller's own profile",
      Tokens: "The caller's own API tokens",
      Admin: 'For admins only',
      Config: 'What a client may know without a token',
    },
    operations,
    schemas: {
      Link,
      LinkCreation: LinkRequest,
      LinkUpdate,
      NewSlug,
      LinkPage: linkList.returns.schema,
      Change,
      ChangePage: changeList.returns.schema,
      Stats,
      DeletedLink,
      DeletedLinkPage: deletedList.returns.schema,
      Health,
      CheckedLink,
      CheckedLinkPage: checkedList.returns.schema,
      MissingSlug,
      Owner,
      Share,
      Tag,
      TagPage: tagList.returns.schema,
      User,
      Profile,
      UserPage: userList.returns.schema,
      Token,
      TokenRequest: NewToken,
      MadeToken: CreatedToken,
      ImportReport,
      Config,
      Error: ErrorBody,
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
