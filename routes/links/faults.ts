import type { User } from '../../db/links/users.ts'
import { linksErrorPage } from '../../html/links/visits.ts'
import type { Context } from '../../kernel/http/context.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http/listener.ts'
import { audienceOf } from '../../kernel/http/view.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'

/** Errors of the links service: `{error, code}`, and a page to a browser. */
export const faultReply: FaultReply = (fault, request) => replyTo(fault, request, null)

/** A fault for a viewer; undefined: nobody is signed in; null: nobody asked who it is. */
export function replyTo(
  fault: Fault,
  request: Pick<Context, 'path' | 'headers'>,
  viewer: User | undefined | null,
): Reply {
  if (!request.path.startsWith('/api/') && audienceOf(request) === 'browser') {
    return faultPage(fault, viewer)
  }
  return jsonReply({ error: fault.message, code: fault.code }, fault.status, fault.headers)
}

/** The page of a fault. */
export function faultPage(fault: Fault, viewer: User | undefined | null): Reply {
  return htmlReply(linksErrorPage(viewer, fault), fault.status, fault.headers)
}

/** A `Location` that proxies and browsers may not take (services/links/target.ts). */
export const LOCATION_TOO_LONG = new Fault(
  414,
  'URI_TOO_LONG',
  'with what the visit adds, the address that the link leads to is too long',
)

export const NOT_FOUND = notFound('nothing is served under this path')
