import * as Type from '../../kernel/schema.ts'
import type { LinkAccess } from '../../db/links/names/links.ts'
import { memberQueries } from '../../db/links/names/members.ts'
import { linkPage } from '../../html/links/link.ts'
import { linkMembers, type MembersView } from '../../html/links/names/members.ts'
import type { Call } from '../../kernel/http/declaration.ts'
import { withDefault } from '../../kernel/validate.ts'
import { newForm, type View } from '../../kernel/http/view.ts'
import { peopleCompletions } from '../../services/links/names/links/completions.ts'
import { NewSlugForm } from '../../services/links/names/links/input.ts'
import { healthOf } from '../../services/links/visits/health/health.ts'
import { endOf } from '../../services/links/names/links/lifecycle.ts'
import { mayChange } from '../../services/links/names/links/links.ts'
import { mayHandOver, NewMember } from '../../services/links/names/members/members.ts'
import { lastDaysOf } from '../../services/links/visits/stats.ts'
import { signedIn } from './access.ts'
import { historyOf } from './names/history/changes.ts'
import { Id, page, shortLinks, type LinksRoutes } from './kit.ts'
import { isGroup, type Caller } from '../../services/links/people/users/groups.ts'
import { readableLink } from './names/links/links.ts'

const flag = withDefault(Type.Boolean(), false)

/** The page of a link, with its visits and the health of its address. */
export const linkPageEndpoints = [
  page({
    path: '/-/links/:id',
    access: signedIn,
    params: { id: Id },
    query: Type.Object({ created: flag, hand_over: flag }),
    find: readableLink,
    answer(call) {
      const { created, hand_over } = call.query
      return linkView(call, call.found, { isNew: created, handsOver: hand_over })
    },
  }),
]

/** What has led to the page of a link. */
interface LinkViewOptions {
  forms?: Partial<MembersView['forms']>
  /** What a form has done to the members. */
  done?: string
  /** Whether the link was created just now. */
  isNew?: boolean
  /** Whether the form that hands the link over is asked for. */
  handsOver?: boolean
}

/** The page of a link; its fragment is the part with its members. */
export async function linkView(
  { app, caller, now }: Pick<Call<LinksRoutes, Caller>, 'app' | 'caller' | 'now'>,
  link: LinkAccess,
  { forms, done, isNew = false, handsOver = false }: LinkViewOptions = {},
): Promise<View> {
  const { db } = app.links
  const isMine = mayChange(link, caller)
  const takesGroups = app.links.takesGroups()
  const [shares, history, offered] = await Promise.all([
    memberQueries.listShares(db, { link: link.id }),
    historyOf(db, link, { mayRestore: isMine }),
    isMine ? peopleCompletions(db, caller, '', { groups: takesGroups }) : [],
  ])
  const empty = newForm(NewMember)
  const members = {
    link,
    shares,
    history,
    done,
    mayChange: isMine,
    mayHandOver: mayHandOver(link, caller),
    handsOver,
    people: offered.filter((name) => !isGroup(name)),
    members: offered,
    takesGroups,
    forms: { owners: empty, shares: empty, owner: empty, slug: newForm(NewSlugForm), ...forms },
  }
  return {
    async page() {
      const stats = isMine ? await lastDaysOf(app.links, link.id, now) : undefined
      const isOn = app.links.checkInterval !== undefined
      const health = isOn ? await healthOf(db, link.id) : undefined
      return linkPage(members, { stats, end: endOf(link, now), health, isNew }, shortLinks(app))
    },
    fragment: () => linkMembers(members),
    location: `/-/links/${link.id}`,
  }
}
