import { wantsFragment, type Context } from '../../../kernel/http/context.ts'
import type { FaultValue } from '../../../kernel/fault.ts'
import type { Html } from '../../../kernel/html.ts'
import { htmlReply, seeOther, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { navigates } from '../../page-answers.ts'
import { idOf, type ListRequest } from '../api/operation.ts'
import { opsFault } from '../faults.ts'

/** A page, or a form post of one. */
export interface PageRoute {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly answer: (context: Context) => Promise<Reply | FaultValue>
}

/** A page bears no authentication (ops.md section 5): its guard is the listener's. */
export function pageRoute({ method, path, answer }: PageRoute): Route {
  return {
    method,
    path,
    access: 'guarded',
    async handle(context) {
      const result = await answer(context)
      return 'body' in result ? result : opsFault(result, context)
    },
  }
}

/** The id in the path; 0, which nothing has, for text that is none. */
export function rowIdOf(context: Context): number {
  return idOf(context) ?? 0
}

/** Answers a form post that succeeded: the fragment to htmx, else 303. */
export async function doneReply(
  context: Context,
  location: string,
  fragment: () => Html | Promise<Html>,
): Promise<Reply> {
  return wantsFragment(context) ? htmlReply(await fragment()) : seeOther(location)
}

/** Answers a form post that is refused: with the form for who sees one, else with the fault. */
export async function refusedReply(
  context: Context,
  fault: FaultValue,
  page: () => Html | Promise<Html>,
  fragment: () => Html | Promise<Html>,
): Promise<Reply> {
  const { status, headers } = fault
  if (wantsFragment(context)) return htmlReply(await fragment(), status, headers)
  if (navigates(context)) return htmlReply(await page(), status, headers)
  return opsFault(fault, context)
}

/** A page of a list, of which one row more was asked for; `older` leads to the rest. */
export function pageOf<T>(
  rows: readonly T[],
  { limit, offset, query }: ListRequest,
  path: string,
): { readonly rows: readonly T[]; readonly older: string | undefined } {
  if (rows.length <= limit || limit === 0) return { rows: rows.slice(0, limit), older: undefined }
  const next = new URLSearchParams(query)
  next.set('offset', String(offset + limit))
  return { rows: rows.slice(0, limit), older: `${path}?${next}` }
}
