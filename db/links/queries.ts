import Type from 'typebox'
import { loadQueries } from '../queries.ts'
import { Bearer, ExportedLink, Token, User } from './rows.ts'

const Id = Type.Object({ id: Type.String() })
const Slug = Type.Object({ slug: Type.String() })

/** Every query of `sql/links.sql` with the types of its arguments and its row. */
export const linksQueries = loadQueries('sql/links.sql', {
  addUser: { args: ['text', 'text', 'text', 'timestamptz'], row: User },
  findUserByEmail: { args: ['text'], row: User },
  listUsers: { args: ['text', 'int8'], row: User },
  lockAdmins: { args: ['uuid'], row: User },
  setRole: { args: ['uuid', 'text'], row: User },
  takeTokenTurn: { args: ['uuid'] },
  addToken: {
    args: ['uuid', 'text', 'text', 'bytea', 'timestamptz', 'timestamptz', 'int8'],
    row: Token,
  },
  removeExpiredTokens: { args: ['uuid', 'timestamptz'] },
  listTokens: { args: ['uuid'], row: Token },
  removeToken: { args: ['uuid', 'uuid'], row: Id },
  findToken: { args: ['bytea', 'timestamptz'], row: Bearer },
  touchToken: { args: ['uuid', 'timestamptz'] },
  importLinks: { args: ['jsonb', 'text', 'timestamptz', 'int8'], row: Slug },
  countHiddenLinks: { args: [], row: Type.Object({ links: Type.Integer() }) },
  listLinksToExport: { args: ['text', 'int8'], row: ExportedLink },
})
