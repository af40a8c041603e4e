import type { Database } from '../../../../db/client.ts'
import { userQueries as q } from '../../../../db/links/people/users.ts'
import { foldTag, partsOf } from './input.ts'
import { beforeSlugs } from './slug.ts'
import { listTags } from '../tags.ts'
import { isGroup, type Caller } from '../../people/users/groups.ts'

/** Values that a field offers. */
const MAX_OFFERED = 20
/** The maximum number of a user's links that are searched for co-owners. */
const MAX_LINKS = 500
const LONGEST = 300

/**
 * What a field of tags may go on to: the tags before the last comma as they were typed, then each
 * tag that the user may see and that begins with the rest.
 */
export async function tagCompletions(
  db: Database,
  user: Caller,
  text: string,
): Promise<readonly string[]> {
  const [, before = '', rest = ''] = /^(.*,\s*)?([^,]*)$/s.exec(text) ?? []
  const beginning = foldTag(rest.trim())
  if (!/^[a-z0-9-]*$/.test(beginning)) return []
  const given = new Set(partsOf(before, /,/).map(foldTag))
  const slice = { after: beforeSlugs(beginning), limit: MAX_OFFERED + given.size }
  const tags = await listTags(db, user, slice)
  return tags
    .map(({ slug }) => slug)
    .filter((tag) => tag.startsWith(beginning) && !given.has(tag))
    .slice(0, MAX_OFFERED)
    .map((tag) => before + tag)
}

/**
 * The addresses of people, and with `groups` the groups, that begin with a text. Only admins may
 * list all users (links.md section 4); others are offered the people and groups of the links that
 * they own or were given to read. Everybody is offered the own groups.
 */
export async function peopleCompletions(
  db: Database,
  user: Caller,
  text: string,
  { groups }: { groups: boolean },
): Promise<readonly string[]> {
  const typed = text.trim()
  const beginning = isGroup(typed) ? typed : typed.toLowerCase()
  if (beginning.includes('\0') || beginning.length > LONGEST) return []
  const asked = { beginning, groups, limit: MAX_OFFERED }
  const { id, ids: users } = user
  const people =
    user.role === 'admin'
      ? await q.listUsersBy(db, asked)
      : await q.listPeopleOf(db, { user: id, users, max_links: MAX_LINKS, ...asked })
  const own = groups ? user.groups.filter((group) => group.startsWith(beginning)) : []
  return [...new Set([...people.map(({ email }) => email), ...own])].slice(0, MAX_OFFERED)
}
