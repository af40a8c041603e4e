import { Fault } from '../../kernel/fault.ts'

/** The status of each code of the API: links.md section 7, decisions.md sections 4 and 6. */
export const STATUS = {
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
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  SLUG_CONFLICT: 409,
  DUPLICATE_OWNER: 409,
  DUPLICATE_SHARE: 409,
  LAST_ADMIN: 409,
  PRECONDITION_FAILED: 412,
  BODY_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  TAG_WRITE_FAILED: 500,
  INTERNAL_ERROR: 500,
  UNAVAILABLE: 503,
} as const

/** An expected failure of the links service; `field` names the input that is wrong. */
export function linksFault(code: keyof typeof STATUS, message: string, field?: string): Fault {
  return new Fault(STATUS[code], code, message, field === undefined ? {} : { field })
}
