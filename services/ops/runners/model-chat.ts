import { setTimeout as pause } from 'node:timers/promises'
import { parseObject } from '../../../kernel/json.ts'
import { causeOf, messageOf } from '../../../kernel/log.ts'
import { readText } from '../../../kernel/text.ts'
import { redactCut, redactLine, type Redaction } from '../redact.ts'
import {
  BadReply,
  createReply,
  dataLines,
  errorText,
  type Reply,
  type ReplyListener,
} from './model-stream.ts'

/** An OpenAI-compatible endpoint: a base URL that ends in /v1, and its key. */
export interface Endpoint {
  readonly url: string
  readonly key: string | undefined
}

/** A message of a conversation, as the protocol has it. */
export type Message =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | {
      readonly role: 'assistant'
      readonly content: string
      readonly tool_calls?: readonly WrittenCall[]
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export interface WrittenCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

/** A tool, as the model sees it. */
export interface FunctionTool {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description: string
    readonly parameters: unknown
  }
}

export interface ChatRequest {
  readonly model: string
  readonly messages: readonly Message[]
  readonly tools?: readonly FunctionTool[]
}

export interface ChatOptions extends ReplyListener {
  readonly signal: AbortSignal
  /** An endpoint's error messages may quote secrets. */
  readonly redact: Redaction
  /** How often the request is tried. */
  readonly attempts?: number
  /** Milliseconds that are left. No pause begins that would last longer. */
  readonly left?: () => number
  /** Called before a pause of so many milliseconds, after which the request is tried again. */
  readonly retry?: (problem: string, waitMs: number) => void
  /** Called when a reply breaks off. What had come is lost, but may have cost something. */
  readonly lost?: (partial: Reply) => void
}

/** `aborted`: the signal came before the reply. */
export type ChatResult =
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** `againInMs`: the endpoint may be asked again after a pause for which there was no time. */
  | { readonly kind: 'failed'; readonly problem: string; readonly againInMs?: number }
  | { readonly kind: 'aborted' }

/** Why a try gave no reply. */
interface Failure {
  readonly problem: string
  /** Whether another try may help, and the shortest pause before it. */
  readonly again: boolean
  readonly afterMs?: number | undefined
}

const DEFAULT_ATTEMPTS = 5
const FIRST_PAUSE_MS = 500
/** An endpoint that asks for a longer pause is asked again after this one. */
const MAX_PAUSE_MS = 60_000
/** Bytes of an error's body. */
const MAX_ERROR_BYTES = 10_000
/** Bytes of a reply that is not streamed. */
const MAX_REPLY_BYTES = 4 * 1024 * 1024
/** Characters of an endpoint's error message. */
const MAX_MESSAGE = 300

/**
 * Asks a model, streaming (decisions.md section 5, Runners). 408, 409, 429, 5xx and network errors
 * are tried again, after the pause that Retry-After asks for; any other status is final. Never
 * rejects.
 */
export async function completeChat(
  endpoint: Endpoint,
  request: ChatRequest,
  options: ChatOptions,
): Promise<ChatResult> {
  const { signal, attempts = DEFAULT_ATTEMPTS, left, retry } = options
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(endpoint, request, options)
    // Even if the signal came with its end: the reply is paid for.
    if (!('problem' in result)) return { kind: 'reply', reply: result }
    if (signal.aborted) return { kind: 'aborted' }
    const { problem, again, afterMs } = result
    if (!again) return { kind: 'failed', problem: `the model endpoint ${problem}` }
    if (attempt >= attempts) {
      return { kind: 'failed', problem: `the model endpoint ${problem}, ${attempts} times over` }
    }
    const waitMs = Math.min(afterMs ?? FIRST_PAUSE_MS * 2 ** (attempt - 1), MAX_PAUSE_MS)
    if (left !== undefined && waitMs >= left()) {
      return { kind: 'failed', problem: `the model endpoint ${problem}`, againInMs: waitMs }
    }
    retry?.(problem, waitMs)
    try {
      await pause(waitMs, undefined, { signal })
    } catch {
      // AbortError: the session ends meanwhile.
      return { kind: 'aborted' }
    }
  }
}

async function tryOnce(
  { url, key }: Endpoint,
  { model, messages, tools }: ChatRequest,
  { signal, redact, text, activity, lost }: ChatOptions,
): Promise<Reply | Failure> {
  const gathered = createReply({ text, activity })
  let begun = false
  try {
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      signal,
      // A redirect would send the key to another address.
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        accept: 'text/event-stream',
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model,
        messages,
        ...(tools !== undefined && tools.length > 0 && { tools }),
        stream: true,
        stream_options: { include_usage: true },
      }),
    })
    if (!response.ok) return await readFailure(response, redact)
    begun = true
    await gather(response, gathered.take)
    if (gathered.reply.finish === null) throw new BadReply('the answer broke off')
    return gathered.reply
  } catch (error) {
    if (begun) lost?.(gathered.reply)
    if (error instanceof BadReply) {
      return {
        problem: `answered badly: ${redactLine(error.message, MAX_MESSAGE, redact)}`,
        again: true,
      }
    }
    return { problem: `can't be reached: ${redact(messageOf(causeOf(error)))}`, again: true }
  }
}

/** Gives every piece of a streamed reply to `take`, or the whole of one that is not streamed. */
async function gather(response: Response, take: (data: string) => void): Promise<void> {
  const type = response.headers.get('content-type') ?? ''
  if (response.body === null || type.startsWith('application/json')) {
    return take((await readText(response, MAX_REPLY_BYTES)).text)
  }
  for await (const data of dataLines(response.body)) {
    if (data === '[DONE]') return
    if (data !== '') take(data)
  }
}

async function readFailure(response: Response, redact: Redaction): Promise<Failure> {
  const { status, headers } = response
  const { text, cut } = await readText(response, MAX_ERROR_BYTES)
  const error = parseObject(text)?.['error'] ?? redactCut(text, cut, redact)
  const said = redactLine(errorText(error), MAX_MESSAGE, redact)
  return {
    problem: `answered ${status}${said === '' ? '' : ` (${said})`}`,
    again: [408, 409, 429].includes(status) || status >= 500,
    afterMs: readRetryAfter(headers.get('retry-after')),
  }
}

/** Seconds or a date, as milliseconds from now. */
function readRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined
  const seconds = Number(value)
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}
