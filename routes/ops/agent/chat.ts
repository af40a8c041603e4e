import { Fault } from '../../../kernel/fault.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { readJson } from '../../../kernel/http/read-body.ts'
import { jsonReply, type Reply, type Sink } from '../../../kernel/http/reply.ts'
import { messageOf } from '../../../kernel/log.ts'
import { encodeFrame, KEEP_ALIVE, STREAM_HEADERS } from '../../../kernel/http/sse.ts'
import { answerOf, chatModels, promptOf, readChat } from '../../../services/ops/agent/chat.ts'
import { keyHolder } from '../access.ts'
import { raw, type OpsApp } from '../kit.ts'

const BODY_LIMIT = 1024 * 1024
const KEEP_ALIVE_MS = 15_000
const access = keyHolder({
  notConfigured: new Fault(503, 'NOT_CONFIGURED', 'OPS_CHAT_API_KEY is not configured'),
  wrongKey: new Fault(
    401,
    'INVALID_API_KEY',
    'the API key is missing or wrong: send Authorization: Bearer KEY',
    { headers: { 'www-authenticate': 'Bearer' } },
  ),
})

/**
 * `/v1/models` and `/v1/chat/completions` of OpenAI's API: a question starts a session, the
 * model's name is the tier at which it starts, and the session's output is the answer. They have no
 * notes, so they are not in the API's document: OpenAI describes them.
 */
export const chatEndpoints = [
  raw({
    path: '/v1/models',
    access,
    answer({ app: { ops } }) {
      const ids = [...chatModels(ops.config.current.max_tier).keys()]
      const data = ids.map((id) => ({ id, object: 'model', created: 0, owned_by: 'gatehouse' }))
      return jsonReply({ object: 'list', data })
    },
  }),

  raw({ method: 'POST', path: '/v1/chat/completions', access, answer: complete }),
]

async function complete({
  app: { ops },
  actor,
  now,
  context,
}: Call<OpsApp, undefined>): Promise<Reply> {
  const request = readChat(await readJson(context, BODY_LIMIT))
  const tier = chatModels(ops.config.current.max_tier).get(request.model)
  if (tier === undefined) {
    throw new Fault(404, 'MODEL_NOT_FOUND', 'no model has this name; GET /v1/models lists them')
  }
  const prompt = promptOf(request)
  const session = await ops.sessions.start({ tier, trigger: 'api', prompt, actor })
  if (session === undefined) {
    throw new Fault(409, 'SESSION_RUNNING', 'a session is running; try again when it has ended')
  }
  const created = Math.floor(now.getTime() / 1_000)
  const head = { id: `chatcmpl-${session.id}`, created, model: request.model }
  if (request.stream === true) {
    return {
      status: 200,
      headers: STREAM_HEADERS,
      body: (sink) => void streamAnswer(ops, sink, session.id, head),
    }
  }
  let content = ''
  const answer = answerOf(ops.db, ops.lines, session.id, context.gone())
  for await (const piece of answer) content += piece
  const message = { role: 'assistant', content: content.trim() }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  return jsonReply({ ...head, object: 'chat.completion', choices })
}

async function streamAnswer(
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
  const stopKeepAlive = clock.every(KEEP_ALIVE_MS, () => sink.write(KEEP_ALIVE))
  try {
    send({ role: 'assistant', content: '' }, null)
    for await (const content of answerOf(db, lines, session, gone.signal)) {
      send({ content }, null)
      await sink.drained()
    }
    send({}, 'stop')
    sink.end(encodeFrame({ data: '[DONE]' }))
  } catch (error) {
    log.warn('chat not streamed to its end', { session, error: messageOf(error) })
    sink.destroy()
  } finally {
    stopKeepAlive()
  }
}
