import type { ServerResponse } from 'node:http'
import { backends } from './backends.ts'
import { ended, inventoryFile, startOps, trigger } from './ops.ts'
import type { Event, OpsServer, Session } from './ops.ts'
import type { Owner } from './owner.ts'
import type { Env } from './program.ts'
import { startReceiver } from './replays.ts'

/** A message of a conversation, as an endpoint gets it. */
export type ChatMessage = {
  readonly role: string
  readonly content: string
  readonly reasoning_content?: string
  readonly tool_calls?: readonly { function: { name: string; arguments: string } }[]
}

/** A request to a model, as an endpoint gets it. */
export type ChatBody = {
  readonly model: string
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly object[]
  readonly stream_options?: object
}

/** What an imitated server answers, byte for byte. */
export type Imitated = {
  readonly status?: number
  readonly type?: string
  readonly body: string
}

/** A server of models that answers as real ones do, one answer after the other. */
export type ImitatedServer = {
  readonly env: Env
  /** What it was asked in sessions that a test started. */
  readonly asked: readonly ChatBody[]
  /** Takes these answers next; the last one is repeated. */
  answer(answers: readonly (Imitated | string)[]): void
}

/** Starts one, which ends with the test. Scheduled sessions have their own answers. */
export async function startImitated(
  t: Owner,
  scheduled: readonly (Imitated | string)[] = ['All is well.'],
): Promise<ImitatedServer> {
  const asked: ChatBody[] = []
  let scheduledAt = 0
  let script: readonly (Imitated | string)[] = ['All is well.']
  let at = 0
  const { url } = await startReceiver(t, ({ body }, response) => {
    const request: ChatBody = JSON.parse(body.toString('utf8'))
    const task = request.messages.find(({ role }) => role === 'user')?.content ?? ''
    if (task.startsWith('Scheduled session')) {
      return send(response, scheduled[Math.min(scheduledAt++, scheduled.length - 1)] ?? '')
    }
    asked.push(request)
    return send(response, script[Math.min(at++, script.length - 1)] ?? '')
  })
  return {
    env: { OPS_MODEL_URL: `${url}/v1` },
    asked,
    answer(answers) {
      script = answers
      at = 0
      asked.length = 0
    },
  }
}

function send(response: ServerResponse, answer: Imitated | string): void {
  const { status = 200, type, body } = typeof answer === 'string' ? streamed(answer) : answer
  response.writeHead(status, { 'content-type': type ?? 'application/json' }).end(body)
}

/** An answer in pieces, which ends for a reason; without one, only by `[DONE]`. */
export function sse(deltas: readonly object[], finish: string | null = 'stop'): Imitated {
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }))
  const last = { choices: [{ index: 0, delta: {}, finish_reason: finish }] }
  const lines = [...chunks, ...(finish === null ? [] : [last])].map(
    (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
  )
  return { type: 'text/event-stream', body: `${lines.join('')}data: [DONE]\n\n` }
}

/** An answer in words. */
export function streamed(content: string, finish: string | null = 'stop'): Imitated {
  return sse([{ role: 'assistant', content }], finish)
}

/** An answer that is not streamed. */
export function whole(message: object, finish: string | null = 'stop'): Imitated {
  return { body: JSON.stringify({ choices: [{ index: 0, message, finish_reason: finish }] }) }
}

/** A refusal. */
export function refusal(status: number, error: object | string): Imitated {
  return { status, body: JSON.stringify({ error }) }
}

/** Calls of tools, a piece for each, in whatever form. */
export function callDeltas(...calls: readonly object[]): Imitated {
  const deltas = calls.map((call) => ({ tool_calls: [call] }))
  return sse(deltas, 'tool_calls')
}

/** A call of a tool as the protocol has it; arguments that are text are sent as they are. */
export function toolCall(name: string, args: unknown): Imitated {
  const written = typeof args === 'string' ? args : JSON.stringify(args)
  return callDeltas({ index: 0, id: `id-${name}`, function: { name, arguments: written } })
}

/** The check of the service `shop`. */
export const CHECK_SHOP = toolCall('run_check', { service: 'shop' })
/** What comes of it. */
export const SHOP_IS_WELL = /^ok health: answered 204/

/** A session with imitated answers. */
export type Played = {
  readonly session: Session
  /** As its page shows it. */
  readonly summary: string
  readonly page: string
  /** The event of its end, if it did not end well. */
  readonly problem: string
}

/** An ops service with a service `shop`, and the server of its model. */
export type ImitatedOps = {
  readonly ops: OpsServer
  readonly server: ImitatedServer
  play(answers: readonly (Imitated | string)[], prompt?: string): Promise<Played>
  /** What the model was told after its answer of this number, from 0. */
  toldAfter(answer: number): string
}

export async function startImitatedOps(
  t: Owner,
  env: Env = {},
  scheduled?: readonly (Imitated | string)[],
): Promise<ImitatedOps> {
  const shop = await startReceiver(t)
  const check = { type: 'http', name: 'health', url: shop.url }
  const server = await startImitated(t, scheduled)
  const inventory = { services: [{ name: 'shop', checks: [check] }] }
  const ops = await startOps(t, backends[1], {
    ...server.env,
    OPS_MAX_TURNS: '60',
    OPS_INVENTORY: await inventoryFile(t, inventory),
    ...env,
  })
  await ended(ops)
  return {
    ops,
    server,
    async play(answers, prompt = 'Is the shop well?') {
      server.answer(answers)
      const { id } = await trigger(ops, prompt)
      const session = await ended(ops, id)
      const page = await (await fetch(`${ops.base}/sessions/${id}`)).text()
      const [, shown = ''] =
        /<div class="summary"><div class="markdown">([^]*?)<\/div>/.exec(page) ?? []
      const summary = shown.replaceAll('</p><p>', '\n\n').replaceAll(/<\/?p>/g, '')
      const { json } = await ops.api<{ events: readonly Event[] }>('GET', '/events')
      const end = json.events.find((event) => event.session_id === id && event.level !== 'info')
      return { session, summary, page, problem: end?.message ?? '' }
    },
    toldAfter: (answer) => server.asked[answer + 1]?.messages.at(-1)?.content ?? '',
  }
}
