import { setTimeout as pause } from 'node:timers/promises'
import { parseObject } from '../../../kernel/json.ts'
import { causeOf, messageOf } from '../../../kernel/log.ts'
import { readText } from '../read-text.ts'
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

/** A tool as the model is told of it. */
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
  /** What an endpoint says of a problem is told without secrets. */
  readonly redact: Redaction
  /** How often it is tried; 5 times when absent. */
  readonly attempts?: number
  /** Milliseconds that are left: a pause that would outlast them is not begun. */
  readonly left?: () => number
  /** It is tried again in so many milliseconds, because of a problem. */
  readonly retry?: (problem: string, waitMs: number) => void
  /** A try broke off while the answer came; what had come is lost, and may have cost something. */
  readonly lost?: (partial: Reply) => void
}

/** What became of a request. `aborted`: the signal came first. */
export type ChatResult =
  | { readonly kind: 'reply'; readonly reply: Reply }
  /** `againInMs`: it may be asked again, but not as early as there was time for. */
  | { readonly kind: 'failed'; readonly problem: string; readonly againInMs?: number }
  | { readonly kind: 'aborted' }

interface Trouble {
  readonly problem: string
  /** Whether another try may help, and after how long at least. */
  readonly again: boolean
  readonly afterMs?: number | undefined
}

const ATTEMPTS = 5
const FIRST_PAUSE_MS = 500
/** An endpoint that asks for more patience is asked again after this. */
const LONGEST_PAUSE_MS = 60_000
/** Bytes of an error's body that are read. */
const ERROR_BYTES = 10_000
/** And of an answer that is not streamed. */
const ANSWER_BYTES = 4 * 1024 * 1024
/** Characters of an error that are told. */
const SAID = 300

/**
 * Asks a model, streaming (decisions.md section 5, Runners). 408, 409, 429, 5xx and trouble on the way
 * are tried again, after what Retry-After says; any other refusal is final. Never rejects.
 */
export async function completeChat(
  endpoint: Endpoint,
  request: ChatRequest,
  options: ChatOptions,
): Promise<ChatResult> {
  const { signal, attempts = ATTEMPTS, left, retry } = options
  for (let attempt = 1; ; attempt++) {
    const result = await tryOnce(endpoint, request, options)
    // It is paid for, also when the signal came together with its end.
    if (!('problem' in result)) return { kind: 'reply', reply: result }
    if (signal.aborted) return { kind: 'aborted' }
    const { problem, again, afterMs } = result
    if (!again) return { kind: 'failed', problem: `the model endpoint ${problem}` }
    if (attempt >= attempts) {
      return { kind: 'failed', problem: `the model endpoint ${problem}, ${attempts} times over` }
    }
    const waitMs = Math.min(afterMs ?? FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS)
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
): Promise<Reply | Trouble> {
  const gathered = createReply({ text, activity })
  let begun = false
  try {
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      signal,
      // The key is for this address alone.
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
    if (!response.ok) return await refusal(response, redact)
    begun = true
    await gather(response, gathered.take)
    if (gathered.reply.finish === null) throw new BadReply('the answer broke off')
    return gathered.reply
  } catch (error) {
    if (begun) lost?.(gathered.reply)
    if (error instanceof BadReply) {
      return { problem: `answered badly: ${redactLine(error.message, SAID, redact)}`, again: true }
    }
    return { problem: `can't be reached: ${redact(messageOf(causeOf(error)))}`, again: true }
  }
}

/** Gives each piece of the answer to `take`: a stream's, or the whole of one that is not streamed. */
async function gather(response: Response, take: (data: string) => void): Promise<void> {
  const type = response.headers.get('content-type') ?? ''
  if (response.body === null || type.startsWith('application/json')) {
    return take((await readText(response, ANSWER_BYTES)).text)
  }
  for await (const data of dataLines(response.body)) {
    if (data === '[DONE]') return
    if (data !== '') take(data)
  }
}

async function refusal(response: Response, redact: Redaction): Promise<Trouble> {
  const { status, headers } = response
  const { text, cut } = await readText(response, ERROR_BYTES)
  const error = parseObject(text)?.['error'] ?? redactCut(text, cut, redact)
  const said = redactLine(errorText(error), SAID, redact)
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
