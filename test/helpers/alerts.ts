import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApiResponse } from './api.ts'
import { request } from './http.ts'
import type { RequestOptions } from './http.ts'
import type { Owner } from './owner.ts'
import type { Env } from './program.ts'
import { ROOT } from './program.ts'
import { startReceiver } from './replays.ts'
import { keepSecret, secret } from './secrets.ts'

/** The key of the webhook, and that of the model; neither may turn up anywhere. */
export const CHAT_KEY = secret('chat-api-key')
export const MODEL_KEY = keepSecret('model-key', 'mk/7c+briefs=key?of&the/endpoint')

/** What a model endpoint was asked. */
export type Asked = {
  readonly path: string
  readonly authorization: string | undefined
  readonly body: {
    readonly model: string
    readonly tools?: unknown
    readonly messages: readonly { readonly role: string; readonly content: string }[]
  }
}

/** 429, and after how many seconds it may be asked again. */
export type Refused = { readonly retryAfter: number }

/** A brief from an endpoint that has room for so many characters of messages. */
export type Small = { readonly room: number; readonly brief: string }

/** A model endpoint that writes briefs as the test wants them. */
export type Briefs = {
  /** What makes the webhook use it; sessions are the probe's. */
  readonly env: Env
  readonly asked: readonly Asked[]
  /** How the next requests are answered: with a brief, a status, bytes, or 429; null leaves them open. */
  answer(how: string | number | Refused | Small | { readonly bytes: string } | null): void
  /** Answers those with a brief that were left open. */
  release(brief: string): void
}

/** Starts a model endpoint, which ends with the test. */
export async function startBriefs(t: Owner): Promise<Briefs> {
  const asked: Asked[] = []
  let held: ((brief: string) => void)[] = []
  let how: Parameters<Briefs['answer']>[0] = 'The brief.'
  const { url } = await startReceiver(t, ({ path, headers, body }, response) => {
    asked.push({
      path,
      authorization: headers.authorization,
      body: JSON.parse(body.toString('utf8')),
    })
    const say = (content: string): void => {
      const message = { role: 'assistant', content }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ id: 'a', object: 'chat.completion', choices }))
    }
    if (how === null) held.push(say)
    else if (typeof how === 'string') say(how)
    else if (typeof how === 'number') {
      response.writeHead(how, { 'content-type': 'application/json' })
      response.end(`{"error":{"message":"wrong key ${MODEL_KEY}"}}`)
    } else if ('room' in how) {
      if (body.length <= how.room) return say(how.brief)
      const message = `the request exceeds the available context size (${how.room} characters)`
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message } }))
    } else if ('retryAfter' in how) {
      response.writeHead(429, { 'retry-after': String(how.retryAfter) }).end()
    } else response.writeHead(200, { 'content-type': 'application/json' }).end(how.bytes)
  })
  return {
    env: { OPS_MODEL_URL: `${url}/v1`, OPS_MODEL_KEY: MODEL_KEY, OPS_RUNNER: 'probe' },
    asked,
    answer: (next) => void (how = next),
    release(brief) {
      for (const say of held.splice(0)) say(brief)
      held = []
    },
  }
}

/** What the webhook answers. */
export type Receipt = {
  readonly session_id: number | null
  readonly status: string
  readonly tier?: number
  readonly message?: string
  readonly error?: string
}

/** Delivers an alert; with the right key unless `headers` have another `authorization`. */
export async function deliverAlert(
  base: string,
  body: string | Uint8Array | readonly (string | Uint8Array)[],
  headers: RequestOptions['headers'] = {},
): Promise<ApiResponse<Receipt>> {
  const response = await request(`${base}/api/v1/webhook`, {
    method: 'POST',
    headers: { authorization: `Bearer ${CHAT_KEY}`, ...headers },
    body,
    timeoutMs: 30_000,
  })
  return { ...response, json: response.json<Receipt>() }
}

/** An alert as a real sender delivered it. */
export function sample(name: string): string {
  return readFileSync(join(ROOT, 'test', 'fixtures', 'alerts', name), 'utf8')
}
