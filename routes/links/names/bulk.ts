import * as Type from '../../../kernel/schema.ts'
import type { Database } from '../../../db/client.ts'
import {
  BULK_PLACES,
  bulkListView,
  bulkReportView,
  chosenView,
  moveView,
  type BulkAction,
  type BulkPlace,
} from '../../../html/links/names/bulk.ts'
import { countText, countUpTo, MAX_COUNT } from '../../../html/parts.ts'
import type { Access, Call } from '../../../kernel/http/declaration.ts'
import { newForm, type FormState, type View } from '../../../kernel/http/view.ts'
import { field, parsed, withDefault } from '../../../kernel/validate.ts'
import {
  changeableLinks,
  changeEach,
  MAX_CHOSEN,
  PORTION,
} from '../../../services/links/names/bulk.ts'
import { peopleCompletions } from '../../../services/links/names/links/completions.ts'
import { deleteLink } from '../../../services/links/names/links/links.ts'
import {
  countBySlug,
  EVERY_LINK,
  listBySlug,
  type SlugList,
} from '../../../services/links/names/lists/lists.ts'
import {
  addMember,
  memberFor,
  NewMember,
  OWNERS,
} from '../../../services/links/names/members/members.ts'
import { transferUser } from '../../../services/links/names/members/user-transfer.ts'
import { findUser, userByEmail } from '../../../services/links/people/users/accounts.ts'
import { isUuid } from '../../../kernel/text.ts'
import { linksFault } from '../../../services/links/faults.ts'
import { admin, signedIn, token } from '../access.ts'
import { api, form, page, shortLinks, type LinksRoutes } from '../kit.ts'
import { linkList, nextAddress } from '../paging.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

const text = withDefault(Type.String(), '')

/** Ids of links, each once. */
function idList({ least, most }: { least: 0 | 1; most: number }) {
  return parsed(
    Type.Array(Type.String()),
    `must be ${least} to ${most} ids; choose at least one link, and no more than that at once`,
    (given) => {
      if (!Array.isArray(given)) return undefined
      const ids = [...new Set(given.map((id) => String(id).toLowerCase()))]
      return ids.length >= least && ids.length <= most && ids.every(isUuid) ? ids : undefined
    },
  )
}

/** The links that are changed now, and those that are asked for next. */
const Portion = {
  links: idList({ least: 1, most: PORTION }),
  rest: withDefault(idList({ least: 0, most: MAX_CHOSEN }), []),
}

const Action = field(Type.Enum(['delete', 'owners']), 'must be delete or owners')
const OwnersForm = Type.Object({ ...Portion, ...NewMember.properties })
/** `from` has the links, `email` gets them. */
const MoveForm = Type.Object({ from: Type.String(), ...NewMember.properties })

type BulkCall = Pick<Call<LinksRoutes, Caller>, 'app' | 'caller'>

/** The links of everybody, for admins only, and the links of a user, for that user. */
export const bulkEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/admin/links',
    access: admin(token('full', 'read')),
    id: 'listAllLinks',
    tag: 'Admin',
    summary: 'List all links by slug.',
    query: linkList.query,
    returns: linkList.returns,
    answer: ({ app: { links }, query }) =>
      linkList.read(query, (slice) => listBySlug(links.db, EVERY_LINK, slice)),
  }),
  form({
    path: `${BULK_PLACES.all.path}/move`,
    access: admin(signedIn),
    body: MoveForm,
    async answer({ app: { links }, actor, body, now }) {
      const to = await userByEmail(links.db, body.email)
      const from = await findUser(links.db, body.from)
      if (from === undefined) {
        // Without a field: the form sends this one hidden.
        throw linksFault('NOT_FOUND', `no user has the e-mail address ${body.from}`)
      }
      const moved = await transferUser({ ...links, actor }, { from, to }, now)
      const count = moved.owned + moved.shared + moved.deleted
      const query = new URLSearchParams({ owner: to.email })
      const location = `${BULK_PLACES.all.path}?${query.toString()}`
      return { location, done: ['moved', countText(count, 'link')] }
    },
    async refused({ app, caller }, state) {
      const { from = '', email = '' } = state.typed
      return moveView({ from, form: state, people: await offered(app, caller, email) })
    },
  }),
  ...endpointsOf(BULK_PLACES.all, admin(signedIn)),
  ...endpointsOf(BULK_PLACES.own, signedIn),
]

/** A list whose links can be chosen, and what is done with them. */
function endpointsOf(place: BulkPlace, access: Access<LinksRoutes, Caller>) {
  const isOfAll = place === BULK_PLACES.all
  return [
    page({
      path: place.path,
      access,
      query: Type.Object({ ...linkList.query.properties, q: text, owner: text, chosen: text }),
      async answer({ app, caller, query, context }) {
        const { db } = app.links
        const filter = { q: query.q.trim(), owner: isOfAll ? query.owner.trim() : '' }
        const list = isOfAll ? await listOf(db, filter.owner) : ownedBy(caller)
        const prefix = filter.q.toLowerCase()
        const areChosen = query.chosen === 'all'
        const rows = areChosen ? { ...query, limit: MAX_CHOSEN } : query
        const { links, next_cursor } = await linkList.read(rows, async (slice) =>
          list === undefined ? [] : listBySlug(db, { ...list, prefix }, slice),
        )
        const choose = new URLSearchParams(context.search)
        if (areChosen) choose.delete('chosen')
        else choose.set('chosen', 'all')
        const isWhole = list !== undefined && filter.q + filter.owner === ''
        return bulkListView({
          place,
          filter,
          people: isOfAll ? await offered(app, caller, '') : undefined,
          move: await moveOf(app, caller, filter.owner),
          count: isWhole ? await countOf(db, list) : null,
          areChosen,
          choose: `${place.path}?${choose.toString()}`,
          links,
          next: nextAddress(context, next_cursor),
          short: shortLinks(app),
        })
      },
    }),

    form({
      path: `${place.path}/chosen`,
      access,
      body: Type.Object({
        links: idList({ least: 1, most: MAX_CHOSEN }),
        action: Action,
        email: text,
      }),
      answer(call) {
        const { links, action, email } = call.body
        const typed = { email }
        const portion = { links: links.slice(0, PORTION), rest: links.slice(PORTION) }
        return showChosen(call, { place, action, ...portion }, { schema: OwnersForm, typed })
      },
    }),

    form({
      path: `${place.path}/delete`,
      access,
      body: Type.Object(Portion),
      async answer({ app, caller, actor, body, now }) {
        const { links } = app
        const report = await changeEach(links.db, caller, body.links, ({ id }) =>
          deleteLink({ ...links, actor }, caller, id, now),
        )
        return bulkReportView({
          ...report,
          place,
          action: 'delete',
          rest: body.rest,
          words: 'Deleted',
          short: shortLinks(app),
        })
      },
    }),

    form({
      path: `${place.path}/owners`,
      access,
      body: OwnersForm,
      async answer({ app, caller, body, now }) {
        const { db } = app.links
        const by = { db, caller, at: now, takesGroups: app.links.takesGroups() }
        const { email } = await memberFor(db, body.email, by)
        const report = await changeEach(db, caller, body.links, ({ id }) =>
          addMember(OWNERS, { ...by, id }, email),
        )
        return bulkReportView({
          ...report,
          place,
          action: 'owners',
          rest: body.rest,
          email,
          words: `${email} is now a co-owner of`,
          short: shortLinks(app),
        })
      },
      refused(call, state) {
        const idsIn = (name: string) => (state.typed[name] ?? '').split('\n').filter(isUuid)
        const links = idsIn('links').slice(0, PORTION)
        const rest = idsIn('rest').slice(0, MAX_CHOSEN)
        return showChosen(call, { place, action: 'owners', links, rest }, state)
      },
    }),
  ]
}

interface Chosen {
  place: BulkPlace
  action: BulkAction
  links: readonly string[]
  rest: readonly string[]
}

/** Asks what to do with the chosen links. */
async function showChosen(
  { app, caller }: BulkCall,
  { links: chosen, ...asked }: Chosen,
  form: FormState,
): Promise<View> {
  const { db } = app.links
  const groups = app.links.takesGroups()
  const links = await changeableLinks(db, caller, chosen)
  return chosenView({
    ...asked,
    links,
    missing: chosen.length - links.length,
    form,
    people: await peopleCompletions(db, caller, form.typed?.['email'] ?? '', { groups }),
    short: shortLinks(app),
  })
}

/** The links that a user is the primary owner of, or every link; undefined for an unknown user. */
async function listOf(db: Database, email: string): Promise<SlugList | undefined> {
  if (email === '') return EVERY_LINK
  const owner = await findUser(db, email)
  return owner === undefined ? undefined : { list: 'primary', users: [owner.id] }
}

/** The form for the links of this user; undefined where nobody has that address. */
async function moveOf(app: LinksRoutes, caller: Caller, email: string) {
  const owner = email === '' ? undefined : await findUser(app.links.db, email)
  if (owner === undefined) return undefined
  return { from: owner.email, form: newForm(MoveForm), people: await offered(app, caller, '') }
}

/** The e-mail addresses that a field offers. */
function offered({ links: { db } }: LinksRoutes, caller: Caller, typed: string) {
  return peopleCompletions(db, caller, typed, { groups: false })
}

function ownedBy({ ids }: Caller): SlugList {
  return { list: 'owned', users: ids }
}

async function countOf(db: Database, list: SlugList): Promise<string> {
  return countUpTo(await countBySlug(db, list, MAX_COUNT + 1), 'link')
}
