import { bearsKey } from '../../kernel/tokens.ts'
import type { Context } from '../../kernel/http/context.ts'
import { jsonReply, type Reply, type Sink } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { encodeFrame, KEEP_ALIVE, STREAM_HEADERS } from '../../kernel/http/sse.ts'
import { answerOf, chatModels, promptOf, readChat } from '../../services/ops/chat.ts'
import { readJsonObject } from '../json-body.ts'
import { chatProblem, sessionRuns } from './faults.ts'
import type { OpsApp } from './endpoint.ts'

const BODY_LIMIT = 1024 * 1024
const KEEP_ALIVE_MS = 15_000

/**
 * `/v1/models` and `/v1/chat/completions`, as programs speak to OpenAI: a question starts a session, the
 * model's name is the tier that it starts at, and what the session says is the answer.
 */
export function chatRoutes(options: OpsApp): readonly Route[] {
  return [
    {
      ...{ method: 'GET', path: '/v1/models', access: 'open' },
      handle: async (context) => refuseStranger(options, context) ?? models(options),
    },
    {
      ...{ method: 'POST', path: '/v1/chat/completions', access: 'open' },
      handle: async (context) => refuseStranger(options, context) ?? complete(options, context),
    },
  ]
}

/** 503 without a key, then 401 for who does not bear it. */
function refuseStranger({ chatKey }: OpsApp, { headers }: Context): Reply | undefined {
  const key = chatKey()
  if (key === undefined) {
    return chatProblem(503, 'OPS_CHAT_API_KEY is not configured', 'not_configured')
  }
  if (bearsKey(headers, key)) return undefined
  const message = 'the API key is missing or wrong: send Authorization: Bearer KEY'
  return chatProblem(401, message, 'invalid_api_key', { 'www-authenticate': 'Bearer' })
}

function models({ ops }: OpsApp): Reply {
  const ids = [...chatModels(ops.config.current.max_tier).keys()]
  const data = ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'gatehouse' }))
  return jsonReply({ object: 'list', data })
}

async function complete({ ops }: OpsApp, context: Context): Promise<Reply> {
  const body = await readJsonObject(context, BODY_LIMIT)
  if ('status' in body) return chatProblem(body.status, body.detail, null)
  const request = readChat(body.value)
  if (typeof request === 'string') return chatProblem(400, request, null)
  const tier = chatModels(ops.config.current.max_tier).get(request.model)
  if (tier === undefined) {
    const message = 'there is no such model; GET /v1/models lists them'
    return chatProblem(404, message, 'model_not_found')
  }
  const asked = promptOf(request)
  if ('problem' in asked) return chatProblem(400, asked.problem, null)
  const session = await ops.sessions.start({ tier, trigger: 'api', prompt: asked.prompt })
  if (session === undefined) {
    const { status, message } = sessionRuns()
    return chatProblem(status, message, 'session_running')
  }
  const id = `chatcmpl-${session.id}`
  const created = Math.floor(context.receivedAt.getTime() / 1_000)
  const head = { id, created, model: request.model }
  if (request.stream === true) {
    return {
      status: 200,
      headers: STREAM_HEADERS,
      body: (sink) => void stream(ops, sink, session.id, head),
    }
  }
  const gone = context.gone()
  let content = ''
  for await (const piece of answerOf(ops.db, ops.lines, session.id, gone)) content += piece
  const message = { role: 'assistant', content: content.trim() }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  return jsonReply({ ...head, object: 'chat.completion', choices })
}

async function stream(
  { db, clock, log, lines }: OpsApp['ops'],
  sink: Sink,
  session: number,
  head: object,
): Promise<void> {
  function send(delta: object, finish_reason: 'stop' | null): void {
    const choices = [{ index: 0, delta, finish_reason }]
    const chunk = { ...head, object: 'chat.completion.chunk', choices }
    sink.write(encodeFrame({ data: JSON.stringify(chunk) }))
  }
  const gone = new AbortController()
  sink.onClose(() => gone.abort())
  const stop = clock.every(KEEP_ALIVE_MS, () => sink.write(KEEP_ALIVE))
  try {
    send({ role: 'assistant', content: '' }, null)
    for await (const content of answerOf(db, lines, session, gone.signal)) {
      send({ content }, null)
      await sink.drained()
    }
    send({}, 'stop')
    sink.end(encodeFrame({ data: '[DONE]' }))
  } catch (error) {
    log.warn('chat not streamed to its end', { session, error: String(error) })
    sink.destroy()
  } finally {
    stop()
  }
}
