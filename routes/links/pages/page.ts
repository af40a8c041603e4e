import type { User } from '../../../db/links/users.ts'
import { wantsFragment, type Context } from '../../../kernel/http/context.ts'
import { Fault, type FaultValue } from '../../../kernel/fault.ts'
import type { Html } from '../../../kernel/html.ts'
import { htmlReply, seeOther, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { isUuid } from '../../../kernel/text.ts'
import { STATUS } from '../../../services/links/faults.ts'
import { isRefusal, type Refusal } from '../../../services/links/refusal.ts'
import { visitorOf } from '../../../services/links/users.ts'
import { wantsFullPage } from '../../form.ts'
import { navigates } from '../../page-answers.ts'
import { faultPage, faultReply } from '../faults.ts'
import type { LinksRoutes } from '../options.ts'

/** A request of a page whose visitor is signed in. */
export interface PageCall {
  readonly context: Context
  readonly visitor: User
  /** A parameter of the path; one named `id` or `user` is a UUID. */
  param(name: string): string
}

/** A page or a form post below `/-/`. */
export interface PageRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Only for admins. */
  readonly admin?: true
  readonly answer: (call: PageCall) => Promise<Reply | Refusal | FaultValue>
}

/** Parameters that name a row: what is no UUID names none. */
const IDS: readonly string[] = ['id', 'user']

/**
 * A page of the service. The order of its refusals: the guard's, 403 for who is not signed in, 403 for
 * who is no admin where that counts, 404 for an id that none can be, then its own.
 */
export function pageRoute(
  { links, identify }: LinksRoutes,
  { method, path, admin, answer }: PageRoute,
): Route {
  return {
    method,
    path,
    access: 'guarded',
    async handle(context) {
      const visitor = await visitorOf(links.db, identify(context), context.receivedAt)
      if (visitor === undefined) return refused(context, undefined, SIGN_IN)
      if (admin === true && visitor.role !== 'admin') return refused(context, visitor, ADMINS_ONLY)
      const unknown = IDS.find((name) => !isUuid(context.params[name] ?? NO_ID))
      if (unknown !== undefined) return refused(context, visitor, UNKNOWN_ID)
      const param = (name: string): string => context.params[name] ?? ''
      try {
        const result = await answer({ context, visitor, param })
        if (isRefusal(result)) return refused(context, visitor, faultOf(result))
        return 'body' in result ? result : refused(context, visitor, result)
      } catch (error) {
        if (error instanceof Fault) return refused(context, visitor, error)
        throw error
      }
    },
  }
}

/** Stands for a parameter that a path has not. */
const NO_ID = '00000000-0000-0000-0000-000000000000'

const SIGN_IN: FaultValue = {
  status: 403,
  code: 'FORBIDDEN',
  detail: 'you are not signed in: come through the address where you sign in',
}
const ADMINS_ONLY: FaultValue = {
  status: 403,
  code: 'FORBIDDEN',
  detail: 'only admins may do this',
}
const UNKNOWN_ID: FaultValue = { status: 404, code: 'NOT_FOUND', detail: 'nothing has this id' }

/** A refusal with its status. */
function faultOf({ refused: code, message }: Refusal): FaultValue {
  return { status: STATUS[code], code, detail: message }
}

/**
 * What a refused request gets: the page of an error where a person navigates, else `{error, code}`,
 * whose words the browser's script says on the page that stays.
 */
export function refused(context: Context, visitor: User | undefined, fault: FaultValue): Reply {
  return navigates(context) ? faultPage(fault, visitor) : faultReply(fault, context)
}

/** Answers a form post: the fragment, or the page around it to a browser without script. */
export function fragmentOrPage(
  context: Context,
  page: () => Html,
  fragment: () => Html,
  status = 200,
): Reply {
  return htmlReply(wantsFullPage(context) ? page() : fragment(), status)
}

/** Answers a form post that goes on at another page: 303, or the header that htmx goes by. */
export function goTo(context: Context, location: string): Reply {
  if (!wantsFragment(context)) return seeOther(location)
  const headers = { 'hx-redirect': location, 'cache-control': 'no-store' }
  return { status: 204, headers, body: null }
}
