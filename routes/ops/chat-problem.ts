import { jsonReply, type Reply } from '../../kernel/http/reply.ts'

/** A refusal of the chat API in OpenAI's shape of an error; `code` is what programs tell refusals of one status apart by. */
export function chatProblem(
  status: number,
  message: string,
  code: string | null,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const type = status >= 500 ? 'server_error' : 'invalid_request_error'
  return jsonReply({ error: { message, type, param: null, code } }, status, headers)
}
