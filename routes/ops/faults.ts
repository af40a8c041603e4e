import { STATUS_CODES } from 'node:http'
import { opsErrorPage } from '../../html/ops/error.ts'
import type { FaultValue } from '../../kernel/fault.ts'
import type { FaultReply } from '../../kernel/http/listener.ts'
import { htmlReply, jsonReply } from '../../kernel/http/reply.ts'
import { navigates, sentence } from '../page-answers.ts'
import { chatProblem } from './chat-problem.ts'

/** Errors of the ops service: `{error}` (ops.md section 7), and a page for a person outside the API. */
export const opsFault: FaultReply = ({ status, code, detail, headers = {} }, request) => {
  if (request.path.startsWith('/v1/')) {
    return chatProblem(status, detail, code.toLowerCase(), headers)
  }
  if (!request.path.startsWith('/api/') && navigates(request)) {
    const title = STATUS_CODES[status] ?? 'Error'
    return htmlReply(opsErrorPage({ status, title, detail: sentence(detail) }), status, headers)
  }
  return jsonReply({ error: code === 'INTERNAL_ERROR' ? INTERNAL : detail }, status, headers)
}

/** The contract gives this text. */
const INTERNAL = 'internal server error'

/** 404: nothing of that kind has this id. */
export function notFound(resource: string): FaultValue {
  return { status: 404, code: 'NOT_FOUND', detail: `${resource} not found` }
}

export function badRequest(detail: string): FaultValue {
  return { status: 400, code: 'BAD_REQUEST', detail }
}

/** 409: what was asked for needs that no session runs. */
export const SESSION_RUNS: FaultValue = {
  status: 409,
  code: 'CONFLICT',
  detail: 'a session is running; try again when it has ended',
}
