import type { Fault } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http.ts'
import { jsonReply } from '../../kernel/reply.ts'

/** Errors of the ops service: `{error}` (ops.md section 7). */
export const opsFault: FaultReply = ({ status, code, detail, headers = {} }) =>
  jsonReply({ error: code === 'INTERNAL_ERROR' ? INTERNAL : detail }, status, headers)

/** The contract gives this text. */
const INTERNAL = 'internal server error'

/** 404: nothing of that kind has this id. */
export function notFound(resource: string): Fault {
  return { status: 404, code: 'NOT_FOUND', detail: `${resource} not found` }
}

export function badRequest(detail: string): Fault {
  return { status: 400, code: 'BAD_REQUEST', detail }
}
