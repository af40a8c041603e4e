import Type from 'typebox'
import { loadQueries } from '../queries.ts'
import {
  Change,
  DayClicks,
  Link,
  LinkAccess,
  ListedLink,
  Owner,
  Share,
  Suggestion,
  Tag,
  Target,
} from './rows.ts'

const Id = Type.Object({ id: Type.String() })
const Slug = Type.Object({ slug: Type.String() })
const IsPrimary = Type.Pick(Owner, ['is_primary'])

const fields = ['text', 'text', 'text', 'text', 'bool', 'timestamptz']

/** Every query of `sql/links.sql` with the types of its arguments and its row. */
export const linksQueries = loadQueries('sql/links.sql', {
  findLink: { args: ['uuid', 'uuid'], row: LinkAccess },
  findLinkBySlug: { args: ['text', 'uuid'], row: LinkAccess },
  lockLink: { args: ['uuid'], row: Slug },
  listLinks: { args: ['text', 'int8'], row: Link },
  listOwnLinks: { args: ['uuid', 'text', 'int8'], row: Link },
  linkWindowEnd: { args: ['uuid', 'text', 'text', 'text', 'text', 'int8'], row: Slug },
  findLinks: {
    args: ['uuid', 'text', 'text', 'text', 'text', 'text', 'jsonb', 'text', 'text', 'int8'],
    row: ListedLink,
  },
  addLink: { args: ['text', ...fields], row: Id },
  updateLink: { args: ['uuid', ...fields] },
  removeLink: { args: ['uuid'] },
  takeLoopTurn: { args: [] },
  announceLinks: { args: ['jsonb'] },
  writeTags: { args: ['text', 'jsonb', 'bool'] },
  writeHiddenTags: { args: ['jsonb'] },
  countTags: { args: ['jsonb'] },
  listTags: { args: ['text', 'int8'], row: Tag },
  listVisibleTags: { args: ['uuid', 'text', 'int8'], row: Tag },
  listTagLinks: { args: ['text', 'text', 'int8'], row: Link },
  listVisibleTagLinks: { args: ['text', 'uuid', 'text', 'int8'], row: Link },
  listOwners: { args: ['uuid'], row: Owner },
  addOwner: { args: ['text', 'uuid', 'bool'], row: IsPrimary },
  removeOwner: { args: ['text', 'uuid'], row: IsPrimary },
  listShares: { args: ['uuid'], row: Share },
  addShare: {
    args: ['text', 'uuid', 'text', 'timestamptz'],
    row: Type.Pick(Share, ['created_at']),
  },
  removeShare: { args: ['text', 'uuid'], row: Type.Pick(Share, ['email']) },
  saveChange: { args: ['uuid', 'timestamptz', 'text', 'text', 'jsonb'] },
  listChanges: { args: ['uuid', 'int8'], row: Change },
  findTarget: { args: ['text'], row: Target },
  mayVisit: { args: ['uuid', 'uuid'], row: Type.Object({ may: Type.Boolean() }) },
  suggestLinks: { args: ['jsonb', 'text', 'uuid', 'bool', 'int8'], row: Suggestion },
  saveClicks: { args: ['uuid', 'int8', 'timestamptz', 'jsonb'] },
  forgetClickWriters: { args: ['timestamptz'] },
  listClicks: { args: ['uuid', 'text', 'int8'], row: DayClicks },
})
