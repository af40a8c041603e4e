/** Every code of an expected refusal (links.md section 7); `routes/links/faults.ts` gives each its status. */
export type RefusalCode =
  | 'BAD_REQUEST'
  | 'INVALID_SLUG'
  | 'RESERVED_SLUG'
  | 'INVALID_URL'
  | 'INVALID_FIELD_LENGTH'
  | 'INVALID_TAG'
  | 'TOO_MANY_TAGS'
  | 'INVALID_VISIBILITY'
  | 'INVALID_ROLE'
  | 'PRIMARY_OWNER_PROTECTED'
  | 'FORBIDDEN'
  | 'NOT_FOUND'
  | 'SLUG_CONFLICT'
  | 'DUPLICATE_OWNER'
  | 'DUPLICATE_SHARE'
  | 'LAST_ADMIN'
  | 'PRECONDITION_FAILED'
  | 'TAG_WRITE_FAILED'

/** Why something was not done, in one line for people; `field` is the input that it is about. */
export interface Refusal {
  readonly refused: RefusalCode
  readonly message: string
  readonly field?: string
}

export function refusal(refused: RefusalCode, message: string, field?: string): Refusal {
  return field === undefined ? { refused, message } : { refused, message, field }
}

/** Tells a refusal from a result. */
export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'refused' in value
}
