import type { Context } from '../../kernel/context.ts'
import type { Fault } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http.ts'
import { jsonReply, type Reply } from '../../kernel/reply.ts'
import type { Refusal, RefusalCode } from '../../services/links/refusal.ts'

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
  TAG_WRITE_FAILED: 500,
}

/** Errors of the links service: `{error, code}`. */
export const linksFault: FaultReply = (fault) =>
  jsonReply({ error: fault.detail, code: fault.code }, fault.status, fault.headers ?? {})

/** A refusal in the shape of the API. */
export function refuse({ refused, message }: Refusal, context: Context): Reply {
  return linksFault({ status: STATUS[refused], code: refused, detail: message }, context)
}

export const UNAUTHORIZED: Fault = {
  status: 401,
  code: 'UNAUTHORIZED',
  detail: 'unauthorized',
  headers: { 'www-authenticate': 'Bearer' },
}

export const NOT_FOUND: Fault = {
  status: 404,
  code: 'NOT_FOUND',
  detail: 'nothing is served under this path',
}
