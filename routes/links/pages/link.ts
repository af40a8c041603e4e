import { listChanges } from '../../../db/links/links.ts'
import { listShares } from '../../../db/links/members.ts'
import type { LinkAccess } from '../../../db/links/rows.ts'
import type { User } from '../../../db/links/users.ts'
import { listClicks } from '../../../db/links/visits.ts'
import { deletePage, linkPage } from '../../../html/links/links.ts'
import { linkMembers, type MemberKind, type MembersView } from '../../../html/links/members.ts'
import type { FaultValue } from '../../../kernel/fault.ts'
import { htmlReply, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { STATUS } from '../../../services/links/faults.ts'
import { linkFor, deleteLink } from '../../../services/links/links.ts'
import { clickDays, firstClickDay } from '../../../services/links/clicks.ts'
import {
  endOwnership,
  giveOwnership,
  endShare,
  shareLink,
} from '../../../services/links/members.ts'
import { isRefusal, type Refusal } from '../../../services/links/refusal.ts'
import { readForm, wantsFullPage } from '../../form.ts'
import { sentence } from '../../page-answers.ts'
import { shortLinks, type LinksRoutes } from '../options.ts'
import { goTo, pageRoute, type PageCall } from './page.ts'

const MOST_CHANGES = 50
/** More rows than kinds times days. */
const MOST_CLICKS = 1_000

type Said = Partial<Pick<MembersView, 'refused' | 'said'>>

/** `/-/links/{id}`: a link with its owners, shares, history and clicks, and the forms on it. */
export function linkRoutes(options: LinksRoutes): readonly Route[] {
  const { links } = options
  const { db, clock } = links

  async function membersOf(link: LinkAccess, visitor: User, said: Said): Promise<MembersView> {
    const [shares, changes] = await Promise.all([
      listShares(db, link.id),
      listChanges(db, link.id, MOST_CHANGES),
    ])
    const mayChange = link.is_owner || visitor.role === 'admin'
    const { id, slug, owners } = link
    const rest = { mostChanges: MOST_CHANGES, mayChange, refused: null, said: null, ...said }
    return { id, slug, owners, shares, changes, ...rest }
  }

  async function page(visitor: User, link: LinkAccess, said: Said, status = 200): Promise<Reply> {
    const now = clock.now()
    const [members, clicks] = await Promise.all([
      membersOf(link, visitor, said),
      listClicks(db, link.id, firstClickDay(now), MOST_CLICKS),
    ])
    const view = { link, short: shortLinks(options), clicks: { days: clickDays(now), clicks } }
    return htmlReply(linkPage(visitor, { ...view, members }), status)
  }

  async function show({ visitor, param }: PageCall): Promise<Reply | Refusal> {
    const link = await linkFor(db, param('id'), visitor, 'read')
    return isRefusal(link) ? link : page(visitor, link, {})
  }

  /** The page's members after a form, or the whole page for a browser without script. */
  async function after({ context, visitor, param }: PageCall, said: Said, status = 200) {
    const link = await linkFor(db, param('id'), visitor, 'read')
    // Who has removed their own co-ownership may not see the link any more.
    if (isRefusal(link)) return goTo(context, '/-/')
    if (wantsFullPage(context)) return page(visitor, link, said, status)
    return htmlReply(linkMembers(await membersOf(link, visitor, said)), status)
  }

  async function add(call: PageCall, kind: MemberKind): Promise<Reply | Refusal | FaultValue> {
    const { context, visitor, param } = call
    const link = await linkFor(db, param('id'), visitor, 'change')
    if (isRefusal(link)) return link
    const form = await readForm(context)
    if ('status' in form) return form
    const email = form.get('email') ?? ''
    const give = kind === 'owners' ? giveOwnership : shareLink
    const result = await give(db, visitor, link.id, email, context.receivedAt)
    if (!isRefusal(result)) {
      const what = kind === 'owners' ? 'is a co-owner now' : 'may read the link now'
      return after(call, { said: `${result.email} ${what}.` })
    }
    if (result.field !== 'email') return result
    const refused = { form: kind, email, message: sentence(result.message) }
    return after(call, { refused }, STATUS[result.refused])
  }

  async function remove(call: PageCall, kind: MemberKind): Promise<Reply | Refusal> {
    const { context, visitor, param } = call
    const end = kind === 'owners' ? endOwnership : endShare
    const refusal = await end(db, visitor, param('id'), param('user'), context.receivedAt)
    if (refusal !== undefined) return refusal
    return after(call, { said: kind === 'owners' ? 'Removed.' : 'The share is ended.' })
  }

  async function askDelete({ visitor, param }: PageCall): Promise<Reply | Refusal> {
    const link = await linkFor(db, param('id'), visitor, 'change')
    return isRefusal(link) ? link : htmlReply(deletePage(visitor, link, shortLinks(options)))
  }

  async function removeLink({ context, visitor, param }: PageCall): Promise<Reply | Refusal> {
    return (await deleteLink(links, visitor, param('id'))) ?? goTo(context, '/-/')
  }

  const one = '/-/links/:id'
  const route = (method: 'GET' | 'POST', path: string, answer: Answer): Route =>
    pageRoute(options, { method, path: one + path, answer })
  return [
    route('GET', '', show),
    route('GET', '/delete', askDelete),
    route('POST', '/delete', removeLink),
    ...(['owners', 'shares'] as const).flatMap((kind) => [
      route('POST', `/${kind}`, (call) => add(call, kind)),
      route('POST', `/${kind}/:user/remove`, (call) => remove(call, kind)),
    ]),
  ]
}

type Answer = (call: PageCall) => Promise<Reply | Refusal | FaultValue>
