import type { ServerResponse } from 'node:http'
import { postgres } from './backends.ts'
import { ended, inventoryFile, runSession, startOps } from './ops.ts'
import type { Owner } from './owner.ts'
import type { Env } from './program.ts'
import { startReceiver } from './replays.ts'
import { keepSecret } from './secrets.ts'

/** A message of a conversation, as an endpoint gets it. */
type ChatMessage = {
  role: string
  content: string
  reasoning_content?: string
  tool_calls?: readonly { function: { name: string; arguments: string } }[]
}

/** What the endpoint was asked, and what scripts go by. */
export type Asked = {
  path: string
  authorization: string | undefined
  bytes: number
  model: string
  messages: readonly ChatMessage[]
  tools?: readonly { function: { name: string } }[]
  stream?: boolean
  stream_options?: object
  /** How often the model has answered in this session. */
  step: number
  tier: number
  /** What the session is for. */
  prompt: string
  /** What the tools answered last, in the order of their calls. */
  results: readonly string[]
}

/** A call of a tool; arguments that are text are sent unchanged. */
export type Call = readonly [name: string, args: unknown]

/** Words, calls of tools, or both; streamed when the request asks for a stream. */
type Reply = {
  content?: string
  calls?: readonly Call[]
  finish: string | null
}

/** A response byte for byte. */
export type RawAnswer = {
  status?: number
  headers?: Readonly<Record<string, string>>
  body: string
  /** Splits the body into writes of this many bytes. */
  pieceBytes?: number
  /** The connection breaks behind the body. */
  isCut?: boolean
}

/** Text stands for an answer in words. */
export type Answer = string | Reply | RawAnswer

/** One answer after the other, the last one repeated; or an answer by what is asked. */
type Script = readonly Answer[] | ((asked: Asked) => Answer | Promise<Answer>)

/** A model endpoint of a test, whose answers are scripted. */
export type Model = Awaited<ReturnType<typeof startModel>>

/** Without this key the endpoint answers 401. */
export const MODEL_KEY = keepSecret('model-key', 'mk/9f+e2=key?of&the/endpoint')

const USAGE = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }
const JSON_HEADERS = { 'content-type': 'application/json' }
const SSE_HEADERS = { 'content-type': 'text/event-stream' }
const ALL_IS_WELL: Script = ['All is well.']

/** Starts an endpoint, which ends with the test. Its streams have this many characters a chunk. */
export async function startModel(
  t: Owner,
  script: Script = ALL_IS_WELL,
  { scheduled = ALL_IS_WELL, chunk = 20_000 }: { scheduled?: Script; chunk?: number } = {},
) {
  const asked: Asked[] = []
  const next = { scheduled: playerOf(scheduled), started: playerOf(script) }
  const { url } = await startReceiver(t, async ({ path, headers, body }, response) => {
    const { authorization } = headers
    if (authorization !== `Bearer ${MODEL_KEY}`) {
      return send(response, refusal(401, { message: 'no such key' }))
    }
    const one = { path, authorization, bytes: body.length, ...read(body.toString('utf8')) }
    asked.push(one)
    const isScheduled = one.prompt.startsWith('Scheduled session')
    const answer = await next[isScheduled ? 'scheduled' : 'started'](one)
    const said = typeof answer === 'string' ? says(answer) : answer
    return send(response, 'body' in said ? said : replyOf(said, one.stream === true, chunk))
  })
  const answer = (given: Script) => void (next.started = playerOf(given))
  const env: Env = { OPS_MODEL_URL: `${url}/v1`, OPS_MODEL_KEY: MODEL_KEY }
  return {
    /** What makes the product use it. */
    env,
    asked,
    /** Replaces the script; scheduled sessions have their own. */
    answer,
    /** Leaves requests open until the returned function answers them. */
    hold() {
      const { promise, resolve } = Promise.withResolvers<Answer>()
      answer(() => promise)
      return resolve
    },
  }
}

function playerOf(script: Script): (asked: Asked) => Answer | Promise<Answer> {
  if (typeof script === 'function') return script
  let at = 0
  return () => script[Math.min(at++, script.length - 1)] ?? ''
}

function send(response: ServerResponse, answer: RawAnswer) {
  const { status = 200, headers = JSON_HEADERS, body, pieceBytes, isCut } = answer
  response.writeHead(status, headers)
  const bytes = Buffer.from(body)
  const size = pieceBytes ?? Math.max(1, bytes.length)
  for (let at = 0; at < bytes.length; at += size) response.write(bytes.subarray(at, at + size))
  if (isCut === true) response.write('', () => response.destroy())
  else response.end()
}

function replyOf({ content, calls = [], finish }: Reply, stream: boolean, chunk: number) {
  const tool_calls = calls.map(([name, args], index) => ({
    index,
    id: `call-${index}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }))
  if (!stream) {
    const message = { role: 'assistant', content, ...(calls.length > 0 && { tool_calls }) }
    return whole(message, finish, USAGE)
  }
  const named = ({
    function: { name, arguments: text },
    ...call
  }: (typeof tool_calls)[number]) => [
    { tool_calls: [{ ...call, function: { name, arguments: '' } }] },
    ...cut(text, chunk).map((piece) => ({
      tool_calls: [{ index: call.index, function: { arguments: piece } }],
    })),
  ]
  const words = cut(content ?? '', chunk).map((piece) => ({ content: piece }))
  return sse([{ role: 'assistant' }, ...words, ...tool_calls.flatMap(named)], finish, USAGE)
}

function cut(text: string, size: number) {
  const count = Math.ceil(text.length / size)
  return Array.from({ length: count }, (_, at) => text.slice(at * size, (at + 1) * size))
}

function read(body: string): Omit<Asked, 'path' | 'authorization' | 'bytes'> {
  const request: Asked = JSON.parse(body)
  const { messages } = request
  const first = (role: string): string =>
    messages.find((message) => message.role === role)?.content ?? ''
  const last = messages.findLastIndex(({ role }) => role === 'assistant')
  return {
    ...request,
    step: messages.filter(({ role }) => role === 'assistant').length,
    tier: Number(/tier (\d) of 3/.exec(first('system'))?.[1] ?? 0),
    prompt: first('user'),
    results: messages
      .slice(last + 1)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content),
  }
}

/** An answer in words: the end of a session. */
export function says(content: string, finish: string | null = 'stop'): Reply {
  return { content, finish }
}

/** An answer that calls tools. */
export function calls(...list: readonly Call[]): Reply {
  return { calls: list, finish: 'tool_calls' }
}

/** Escalates up to a tier, and goes on there with a script. */
export function inTier(
  tier: number,
  script: Exclude<Script, readonly Answer[]>,
): Exclude<Script, readonly Answer[]> {
  const escalation: Call = ['escalate', { reason: 'as asked', findings: 'none yet' }]
  return (asked) => (asked.tier < tier ? calls(escalation) : script(asked))
}

/** A stream of these pieces, which ends for a reason; without one, only by `[DONE]`. */
export function sse(deltas: readonly object[], finish: string | null = 'stop', usage?: object) {
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }))
  const last = { choices: [{ index: 0, delta: {}, finish_reason: finish }] }
  const all = [
    ...chunks,
    ...(finish === null ? [] : [last]),
    ...(usage === undefined ? [] : [{ choices: [], usage }]),
  ]
  const lines = all.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  return { headers: SSE_HEADERS, body: `${lines.join('')}data: [DONE]\n\n` }
}

/** An answer that is not streamed. */
export function whole(message: object, finish: string | null = 'stop', usage?: object) {
  return {
    body: JSON.stringify({ choices: [{ index: 0, message, finish_reason: finish }], usage }),
  }
}

/** A refusal. */
export function refusal(
  status: number,
  error: object | string,
  headers: Readonly<Record<string, string>> = {},
) {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify({ error }) }
}

/** The check of the service `shop`. */
export const CHECK_SHOP = calls(['run_check', { service: 'shop' }])

/**
 * Starts an ops service with a service `shop`, or the inventory of `env`, and its model, whose scheduled session has
 * ended.
 */
export async function startModelOps(t: Owner, env: Env = {}, scheduled: Script = ALL_IS_WELL) {
  const shop = await startReceiver(t)
  const checks = [{ type: 'http', name: 'health', url: shop.url }]
  const model = await startModel(t, ALL_IS_WELL, { scheduled })
  const ops = await startOps(t, postgres, {
    ...model.env,
    OPS_MAX_TURNS: '60',
    OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks }] }),
    ...env,
  })
  await ended(ops)
  let from = 0
  /** What the model was asked since it was given its script. */
  const asked = () => model.asked.slice(from)
  function answer(script: Script) {
    from = model.asked.length
    model.answer(script)
  }
  return {
    ops,
    model,
    asked,
    answer,
    /** Runs a session; gives it with its summary, its page, and the event of its end if that was not well. */
    async play(script: Script, prompt = 'Is the shop well?') {
      answer(script)
      const session = await runSession(ops, prompt)
      const [row] = await ops.query(
        `select coalesce(summary, '') as summary, coalesce((select message from ops.events e
            where e.session_id = s.id and level <> 'info' order by id desc limit 1), '') as problem
           from ops.sessions s where id = $1`,
        [session.id],
      )
      const ending = row as { summary: string; problem: string }
      return { ...session, ...ending, page: () => ops.page(`/sessions/${session.id}`) }
    },
    /** What the model was told after its answer of this number, from 0. */
    toldAfter: (at: number) => asked()[at + 1]?.messages.at(-1)?.content ?? '',
  }
}
