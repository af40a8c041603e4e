import {
  parseObject,
  numberOf,
  objectOf,
  objectsOf,
  stringOf,
  type JsonObject,
} from '../../../kernel/json.ts'
import { causeOf, messageOf } from '../../../kernel/log.ts'
import { readText } from '../../../kernel/text.ts'
import { pause } from '../../../kernel/time.ts'
import { redactCut, redactLine, type Redaction } from '../redact.ts'

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
      readonly tool_calls?: readonly object[]
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }

export interface ChatRequest {
  readonly model: string
  readonly messages: readonly Message[]
  /** As the protocol describes functions. */
  readonly tools?: readonly object[]
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
    const { again, afterMs } = result
    const problem = `the model endpoint ${result.problem}`
    if (!again) return { kind: 'failed', problem }
    if (attempt >= attempts) {
      return { kind: 'failed', problem: `${problem}, ${attempts} times over` }
    }
    const waitMs = Math.min(afterMs ?? FIRST_PAUSE_MS * 2 ** (attempt - 1), MAX_PAUSE_MS)
    if (left !== undefined && waitMs >= left()) {
      return { kind: 'failed', problem, againInMs: waitMs }
    }
    retry?.(result.problem, waitMs)
    await pause(waitMs, signal)
    if (signal.aborted) return { kind: 'aborted' }
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

/** A tool call, as the model wrote it. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  /** Should be JSON, but a model may err. */
  readonly arguments: string
}

export interface Usage {
  readonly prompt: number
  readonly cached: number
  readonly completion: number
}

/** Characters per token, roughly. */
const TOKEN_LENGTH = 4

/** The tokens of a prompt, estimated. */
export function promptTokens(messages: readonly unknown[]): number {
  return Math.ceil(JSON.stringify(messages).length / TOKEN_LENGTH)
}

/** The tokens of a reply; estimated by characters if the endpoint does not count them. */
export function usageOf({ usage, text, toolCalls }: Reply, prompt: number): Usage {
  const written = text.length + JSON.stringify(toolCalls).length
  return usage ?? { prompt, cached: 0, completion: Math.ceil(written / TOKEN_LENGTH) }
}

export interface Reply {
  readonly text: string
  readonly toolCalls: readonly ToolCall[]
  /** Undefined if the endpoint does not count. */
  readonly usage: Usage | undefined
  /** Why the reply ended; null if the stream broke off before. */
  readonly finish: string | null
}

/** Called while a reply comes. */
interface ReplyListener {
  readonly text: (piece: string) => void
  /** Called for what is not text, such as a part of a tool call. */
  readonly activity: () => void
}

/** A reply that reports an error, or breaks the protocol. */
class BadReply extends Error {
  override name = 'BadReply'
}

/** Characters of a reply: an endpoint that floods must not fill the memory. */
const MAX_REPLY = 4 * 1024 * 1024
const MAX_CALLS = 64

/**
 * Collects a reply from the pieces of a stream, or from the one piece of an endpoint that does not
 * stream.
 */
function createReply(listener: ReplyListener) {
  const drafts = new Map<number, ToolCall>()
  let [text, size] = ['', 0]
  let usage: Usage | undefined
  let finish: string | null = null

  /** Takes the text of one `data:` line; throws `BadReply`. */
  function take(data: string): void {
    size += data.length
    if (size > MAX_REPLY) throw new BadReply('the answer is too long')
    const piece = parseObject(data)
    if (piece === undefined) throw new BadReply('the answer has a line that is no JSON object')
    const error = piece['error']
    if (error !== undefined && error !== null) throw new BadReply(errorText(error))
    usage = readUsage(piece['usage']) ?? usage
    const [choice] = objectsOf(piece['choices'])
    if (choice === undefined) return
    finish = stringOf(choice['finish_reason']) ?? finish
    const delta = objectOf(choice['delta'] ?? choice['message'])
    const content = stringOf(delta['content']) ?? ''
    if (content !== '') {
      text += content
      listener.text(content)
    }
    const calls = objectsOf(delta['tool_calls'])
    for (const call of calls) addCall(call)
    const thought = stringOf(delta['reasoning_content'] ?? delta['reasoning']) ?? ''
    if (calls.length > 0 || thought !== '') listener.activity()
  }

  /** The pieces of a call have the same index. Without an index, every new id begins a call. */
  function addCall(piece: JsonObject): void {
    const id = stringOf(piece['id']) ?? ''
    const index = numberOf(piece['index']) ?? indexOf(id)
    if (!drafts.has(index) && drafts.size >= MAX_CALLS) throw new BadReply('too many tool calls')
    const draft = drafts.get(index)
    const written = objectOf(piece['function'])
    drafts.set(index, {
      id: id || (draft?.id ?? ''),
      name: draft?.name || (stringOf(written['name']) ?? ''),
      arguments: (draft?.arguments ?? '') + (stringOf(written['arguments']) ?? ''),
    })
  }

  function indexOf(id: string): number {
    const known = [...drafts].find(([, draft]) => id !== '' && draft.id === id)?.[0]
    const last = Math.max(-1, ...drafts.keys())
    if (known !== undefined) return known
    return id === '' && last >= 0 ? last : last + 1
  }

  return {
    take,
    get reply(): Reply {
      const ordered = [...drafts].toSorted(([a], [b]) => a - b)
      const toolCalls = ordered.map(([at, draft]) => ({ ...draft, id: draft.id || `call_${at}` }))
      return { text, toolCalls, usage, finish }
    },
  }
}

/** The `data:` lines of an event stream. Throws `BadReply` for a line that never ends. */
async function* dataLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true })
    rest += text
    if (rest.length > MAX_REPLY) throw new BadReply('the answer has a line without an end')
    // A long line in many chunks must not be searched again with every chunk.
    if (!text.includes('\n')) continue
    const lines = rest.split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data:')) yield line.slice(5).trim()
  }
  if (rest.startsWith('data:')) yield rest.slice(5).trim()
}

/** The message of an endpoint's error, of any length. */
function errorText(value: unknown): string {
  return stringOf(value) ?? stringOf(objectOf(value)['message']) ?? JSON.stringify(value)
}

function readUsage(value: unknown): Usage | undefined {
  const usage = objectOf(value)
  const prompt = countOf(usage['prompt_tokens'])
  const completion = countOf(usage['completion_tokens'])
  if (prompt === undefined || completion === undefined) return undefined
  const cached = countOf(objectOf(usage['prompt_tokens_details'])['cached_tokens']) ?? 0
  return { prompt, completion, cached: Math.min(cached, prompt) }
}

function countOf(value: unknown): number | undefined {
  const count = numberOf(value)
  return count === undefined || count < 0 ? undefined : count
}
