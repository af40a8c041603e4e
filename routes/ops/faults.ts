import type { ServiceLink } from '../../html/layout.ts'
import { opsErrorPage, opsFrame } from '../../html/ops/layout.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { audienceOf } from '../../kernel/http/view.ts'

/** The contract's text of a 500. */
const INTERNAL = 'internal server error'

/**
 * Errors of the ops service: `{error}` (ops.md section 7), with a `message` of what to do about it
 * where the fault has advice. Browsers get a page outside the API, and the chat API OpenAI's errors.
 */
export function opsFault(
  { services }: { services: () => readonly ServiceLink[] },
  fault: Fault,
  { path, headers: sent }: Pick<Context, 'path' | 'headers'>,
): Reply {
  const { status, code, message, advice, headers } = fault
  if (path.startsWith('/v1/')) return chatFault(fault)
  if (!path.startsWith('/api/') && audienceOf({ headers: sent }) === 'browser') {
    return htmlReply(opsFrame(opsErrorPage(fault), services()), status, headers)
  }
  const error = code === 'INTERNAL_ERROR' ? INTERNAL : message
  return jsonReply({ error, ...(advice !== undefined && { message: advice }) }, status, headers)
}

/** Codes of faults in a body. OpenAI's errors have no code there. */
const WITHOUT_CODE = new Set(['BAD_REQUEST', 'BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'])

/** An error of the chat API in OpenAI's shape; its code tells errors of one status apart. */
function chatFault({ status, code: ours, message, headers }: Fault): Reply {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  const code = WITHOUT_CODE.has(ours) ? null : ours.toLowerCase()
  return jsonReply({ error: { message, type, param: null, code } }, status, headers)
}

/** The session that was started, or 409: only one runs at a time. */
export function started<Session>(session: Session | undefined): Session {
  if (session !== undefined) return session
  throw new Fault(409, 'CONFLICT', 'a session is running; try again when it has ended')
}
