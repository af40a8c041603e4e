import { STATUS_CODES } from 'node:http'
import type { User } from '../../db/links/rows.ts'
import { linksErrorPage } from '../../html/links/visits.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { FaultValue } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http/listener.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'
import type { Refusal, RefusalCode } from '../../services/links/refusal.ts'
import { navigates, sentence } from '../page-answers.ts'

/** links.md section 7, and decisions.md section 4 for what it leaves open. */
export const STATUS: Readonly<Record<RefusalCode, number>> = {
  BAD_REQUEST: 400,
  INVALID_SLUG: 400,
  RESERVED_SLUG: 400,
  INVALID_URL: 400,
  INVALID_FIELD_LENGTH: 400,
  INVALID_TAG: 400,
  TOO_MANY_TAGS: 400,
  INVALID_VISIBILITY: 400,
  INVALID_ROLE: 400,
  PRIMARY_OWNER_PROTECTED: 400,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  SLUG_CONFLICT: 409,
  DUPLICATE_OWNER: 409,
  DUPLICATE_SHARE: 409,
  LAST_ADMIN: 409,
  PRECONDITION_FAILED: 412,
  TAG_WRITE_FAILED: 500,
}

/** Codes of what the kernel, the token check and the reading of bodies refuse. */
const OTHER_STATUS: Readonly<Record<string, number>> = {
  UNAUTHORIZED: 401,
  METHOD_NOT_ALLOWED: 405,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
}

/** Every code that an error of this status may have. */
export function codesOf(status: number): readonly string[] {
  const all = Object.entries({ ...STATUS, ...OTHER_STATUS })
  return all.filter(([, own]) => own === status).map(([code]) => code)
}

/** Errors of the links service: `{error, code}`, and a page for a person who navigates with a browser. */
export const linksFault: FaultReply = (fault, request) => {
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
  return linksFault({ status: STATUS[refused], code: refused, detail: message }, context)
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
