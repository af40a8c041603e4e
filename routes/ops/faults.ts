import { STATUS_CODES } from 'node:http'
import { sentence } from '../../html/form.ts'
import { opsErrorPage } from '../../html/ops/layout.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http/listener.ts'
import { htmlReply, jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { audienceOf } from '../../kernel/http/view.ts'

/** The contract's text of a 500. */
const INTERNAL = 'internal server error'

/**
 * Errors of the ops service: `{error}` (ops.md section 7), and a page for browsers outside of the
 * API.
 */
export const opsFault: FaultReply = ({ status, code, message, headers }, request) => {
  if (request.path.startsWith('/v1/')) {
    return chatProblem(status, message, code.toLowerCase(), headers)
  }
  if (!request.path.startsWith('/api/') && audienceOf(request) === 'browser') {
    const title = STATUS_CODES[status] ?? 'Error'
    return htmlReply(opsErrorPage({ status, title, detail: sentence(message) }), status, headers)
  }
  return jsonReply({ error: code === 'INTERNAL_ERROR' ? INTERNAL : message }, status, headers)
}

/**
 * An error of the chat API in the shape of OpenAI's; `code` tells programs errors of one status
 * apart.
 */
export function chatProblem(
  status: number,
  message: string,
  code: string | null,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  return jsonReply({ error: { message, type, param: null, code } }, status, headers)
}

/** The row, or 404. */
export function found<Row>(row: Row | undefined, noun: string): Row {
  if (row === undefined) throw notFound(`${noun} not found`)
  return row
}

/** 409: only one session runs at a time. */
export function sessionRuns(): Fault {
  return new Fault(409, 'CONFLICT', 'a session is running; try again when it has ended')
}
