import { createHash } from 'node:crypto'
import * as Type from '../../../../kernel/schema.ts'
import { Visibility } from '../../../../db/links/names/links.ts'
import { ListOrder } from '../../../../db/links/names/lists.ts'
import { decodeCursor, encodeCursor } from '../../../../kernel/cursor.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import { State } from '../links/lifecycle.ts'
import { checkTarget, MAX_URL } from '../links/target.ts'
import { readGroup } from '../../people/users/groups.ts'
import { readEmail } from '../../people/users/users.ts'

const MAX_TEXT = 200

/** What a cursor of another list is refused with. */
export const OTHER_LIST = 'is not from this list; start again from the first page'

/** What the API and the pages filter and sort a list by; '' filters nothing. */
const sharedFields = {
  q: textField('Words, `#tag` and `owner:ada`, as in the search of the pages.'),
  tag: textField('Links with this tag.'),
  state: field(
    withDefault(Type.Enum(['', ...State.enum]), ''),
    `must be ${State.enum.join(', ')}`,
  ),
  sort: orderField('slug'),
}

/** What only the pages filter by. */
const pageFields = {
  visibility: field(withDefault(Type.Enum(['', ...Visibility.enum]), ''), {
    code: 'INVALID_VISIBILITY',
    text: 'must be public, private or secure',
  }),
  role: field(
    withDefault(Type.Enum(['', 'owner', 'co-owner', 'any-owner', 'recipient']), ''),
    'must be owner, co-owner, any-owner or recipient',
  ),
}

const url = Type.String({
  maxLength: MAX_URL,
  description: 'Links to this http:// or https:// URL, compared in the form of the URL standard.',
})
const owner = Type.String({
  description: 'E-mail address of an owner or co-owner, or group:NAME.',
})
const scope = Type.Enum(['own', 'all'], {
  description:
    'own: links that the caller owns or co-owns; all: those that the caller may see. ' +
    'Default: all for admins and with url, else own.',
})

/** What only the API filters by. */
const apiFields = {
  url: parsed(withDefault(url, ''), 'must be a URL', (given) => {
    const trimmed = String(given).trim()
    if (trimmed !== '') checkTarget(trimmed)
    return trimmed
  }),
  owner: parsed(withDefault(owner, ''), 'must be an e-mail address', (given) =>
    given === '' ? '' : (readGroup(String(given)) ?? readEmail(String(given))),
  ),
}

const cursor = parsed(
  Type.Optional(
    Type.Unsafe<ListPosition>({ type: 'string', description: 'next_cursor of the page before' }),
  ),
  OTHER_LIST,
  (given): ListPosition | undefined => {
    const [after, list, place = 0] = decodeCursor(String(given)) ?? []
    // The database takes no NUL, so none of our cursors has one.
    if (typeof after !== 'string' || after.includes('\0')) return undefined
    if (typeof list !== 'string' || !Number.isSafeInteger(place)) return undefined
    return { after, list, place: Number(place) }
  },
)

export const ListFilter = Type.Object({ ...sharedFields, ...pageFields, ...apiFields })
export type ListFilter = Type.Static<typeof ListFilter>

export const NO_FILTER: ListFilter = {
  q: '',
  tag: '',
  url: '',
  owner: '',
  state: '',
  visibility: '',
  role: '',
  sort: 'slug',
}

/**
 * The query of a page with links: a filter, and where the page begins. People look for what is
 * used; the API's default is the contract's.
 */
export const ListQuery = Type.Object({
  ...sharedFields,
  sort: orderField('clicks'),
  ...pageFields,
  cursor,
})

/** The query of the API's list of links, but for its limit. */
export const LinksQuery = Type.Object({
  ...sharedFields,
  ...apiFields,
  scope: field(Type.Optional(scope), 'must be own or all'),
  cursor,
})
export type LinksQuery = Type.Static<typeof LinksQuery>

/** The last link of a page in its order; `place` is its clicks, its time, or how its slug begins. */
export interface ListPosition {
  after: string
  /** The name of its list: a cursor of another list is refused. */
  list: string
  place: number
}

/** The cursor of the page after a position; null after the last page. */
export function cursorAt(position: ListPosition | null): string | null {
  if (position === null) return null
  return encodeCursor([position.after, position.list, position.place])
}

/** The name of a list in cursors: lists of other links, or in another order, have other names. */
export function listName(scope: string, filter: ListFilter): string {
  const parts = [scope, ...Object.entries(filter).toSorted(([a], [b]) => (a < b ? -1 : 1))]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 16)
}

function orderField(first: ListOrder) {
  return field(withDefault(ListOrder, first), `must be ${ListOrder.enum.join(', ')}`)
}

function textField(description: string) {
  const schema = Type.String({ maxLength: MAX_TEXT, description })
  return parsed(
    withDefault(schema, ''),
    `may have ${MAX_TEXT} characters at most, and no NUL`,
    (given) => {
      const trimmed = String(given).trim()
      return trimmed.length <= MAX_TEXT && !trimmed.includes('\0') ? trimmed : undefined
    },
  )
}
