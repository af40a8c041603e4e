import Type from 'typebox'
import { linkQueries } from '../../../db/links/names/links.ts'
import {
  allLinksView,
  bulkReportView,
  chosenView,
  type BulkAction,
} from '../../../html/links/names/bulk.ts'
import { countUpTo, MAX_COUNT } from '../../../html/parts.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { newForm, type FormState, type View } from '../../../kernel/http/view.ts'
import { field, parsed, withDefault } from '../../../kernel/validate.ts'
import { changeableLinks, changeEach, MAX_CHOSEN } from '../../../services/links/names/bulk.ts'
import { peopleCompletions } from '../../../services/links/names/links/completions.ts'
import { deleteLink } from '../../../services/links/names/links/links.ts'
import { listAllLinks } from '../../../services/links/names/lists/lists.ts'
import {
  addMember,
  memberFor,
  NewMember,
  OWNERS,
} from '../../../services/links/names/members/members.ts'
import { findUser } from '../../../services/links/people/users/accounts.ts'
import { isUuid } from '../../../kernel/text.ts'
import { admin, signedIn, token } from '../access.ts'
import { api, form, page, shortLinks, type LinksRoutes } from '../kit.ts'
import { linkList, nextAddress } from '../paging.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

const PATH = '/-/admin/links'

const text = withDefault(Type.String(), '')

/** The ids of the chosen links, each once. */
const Chosen = parsed(
  Type.Array(Type.String()),
  `must be 1 to ${MAX_CHOSEN} ids; choose at least one link, and no more than that at once`,
  (given) => {
    if (!Array.isArray(given)) return undefined
    const ids = [...new Set(given.map((id) => String(id).toLowerCase()))]
    return ids.length > 0 && ids.length <= MAX_CHOSEN && ids.every(isUuid) ? ids : undefined
  },
)

const Action = field(Type.Enum(['delete', 'owners']), 'must be delete or owners')
const OwnersForm = Type.Object({ links: Chosen, ...NewMember.properties })

type AdminCall = Pick<Call<LinksRoutes, Caller>, 'app' | 'caller'>

/** The links of all users, for admins only. */
export const adminLinkEndpoints = [
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
      linkList.read(query, (slice) => listAllLinks(links.db, {}, slice)),
  }),

  page({
    path: PATH,
    access: admin(signedIn),
    query: Type.Object({ ...linkList.query.properties, q: text, owner: text, chosen: text }),
    async answer({ app, caller, query, context }) {
      const { db } = app.links
      const filter = { q: query.q.trim(), owner: query.owner.trim() }
      const owner = filter.owner === '' ? undefined : await findUser(db, filter.owner)
      const isNobody = filter.owner !== '' && owner === undefined
      const prefix = filter.q.toLowerCase()
      const { links, next_cursor } = await linkList.read(query, (slice) =>
        isNobody ? Promise.resolve([]) : listAllLinks(db, { prefix, owner }, slice),
      )
      const areChosen = query.chosen === 'all'
      const choose = new URLSearchParams(context.search)
      if (areChosen) choose.delete('chosen')
      else choose.set('chosen', 'all')
      return allLinksView({
        filter,
        people: await peopleCompletions(db, caller, '', { groups: false }),
        count: filter.q + filter.owner === '' ? await countOf(app) : null,
        areChosen,
        choose: `${PATH}?${choose.toString()}`,
        links,
        next: nextAddress(context, next_cursor),
        short: shortLinks(app),
      })
    },
  }),

  form({
    path: `${PATH}/chosen`,
    access: admin(signedIn),
    body: Type.Object({ links: Chosen, action: Action }),
    answer: (call) => showChosen(call, call.body),
  }),

  form({
    path: `${PATH}/delete`,
    access: admin(signedIn),
    body: Type.Object({ links: Chosen }),
    async answer({ app, caller, actor, body, now }) {
      const { links } = app
      const report = await changeEach(links.db, caller, body.links, ({ id }) =>
        deleteLink({ ...links, actor }, caller, id, now),
      )
      return bulkReportView({ ...report, words: 'Deleted', short: shortLinks(app) })
    },
  }),

  form({
    path: `${PATH}/owners`,
    access: admin(signedIn),
    body: OwnersForm,
    async answer({ app, caller, body, now }) {
      const { db } = app.links
      const by = { db, caller, at: now, takesGroups: app.links.takesGroups() }
      const { email } = await memberFor(db, body.email, by)
      const report = await changeEach(db, caller, body.links, ({ id }) =>
        addMember(OWNERS, { ...by, id }, email),
      )
      const words = `${email} is now a co-owner of`
      return bulkReportView({ ...report, words, short: shortLinks(app) })
    },
    refused(call, state) {
      const links = (state.typed['links'] ?? '').split('\n').filter(isUuid).slice(0, MAX_CHOSEN)
      return showChosen(call, { action: 'owners', links }, state)
    },
  }),
]

/** Asks what to do with the chosen links. */
async function showChosen(
  { app, caller }: AdminCall,
  chosen: { action: BulkAction; links: readonly string[] },
  form: FormState = newForm(OwnersForm),
): Promise<View> {
  const { db } = app.links
  const groups = app.links.takesGroups()
  const links = await changeableLinks(db, caller, chosen.links)
  return chosenView({
    action: chosen.action,
    links,
    missing: chosen.links.length - links.length,
    form,
    people: await peopleCompletions(db, caller, form.typed?.['email'] ?? '', { groups }),
    short: shortLinks(app),
  })
}

async function countOf({ links }: LinksRoutes): Promise<string> {
  const { count } = await linkQueries.countLinks(links.db, { most: MAX_COUNT + 1 })
  return countUpTo(count, 'link')
}
