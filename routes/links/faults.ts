import { STATUS_CODES } from 'node:http'
import type { User } from '../../db/links/rows.ts'
import { linksErrorPage } from '../../html/links/visits.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { FaultValue } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http/listener.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { STATUS } from '../../services/links/faults.ts'
import type { Refusal } from '../../services/links/refusal.ts'
import { navigates, sentence } from '../page-answers.ts'

/** Errors of the links service: `{error, code}`, and a page for a person who navigates with a browser. */
export const faultReply: FaultReply = (fault, request) => {
  if (!request.path.startsWith('/api/') && navigates(request)) return faultPage(fault, null)
  return jsonReply({ error: fault.detail, code: fault.code }, fault.status, fault.headers ?? {})
}

/** The page of a fault; the viewer is null where nobody asked who it is. */
export function faultPage(
  { status, detail, headers }: FaultValue,
  viewer: User | undefined | null,
): Reply {
  const title = STATUS_CODES[status] ?? 'Error'
  const error = { status, title, detail: sentence(detail) }
  return htmlReply(linksErrorPage(viewer, error), status, headers)
}

/** A refusal in the shape of the API. */
export function refuse({ refused, message }: Refusal, context: Context): Reply {
  return faultReply({ status: STATUS[refused], code: refused, detail: message }, context)
}

export const UNAUTHORIZED: FaultValue = {
  status: 401,
  code: 'UNAUTHORIZED',
  detail: 'unauthorized',
  headers: { 'www-authenticate': 'Bearer' },
}

/** A `Location` that proxies and browsers may not take (services/links/target.ts). */
export const LOCATION_TOO_LONG: FaultValue = {
  status: 414,
  code: 'URI_TOO_LONG',
  detail: 'with what the visit adds, the address that the link leads to is too long',
}

export const NOT_FOUND: FaultValue = {
  status: 404,
  code: 'NOT_FOUND',
  detail: 'nothing is served under this path',
}
