import {
  numberOf,
  objectOf,
  objectsOf,
  parseObject,
  stringOf,
  type JsonObject,
} from '../../../kernel/json.ts'

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
export interface ReplyListener {
  readonly text: (piece: string) => void
  /** Called for what is not text, such as a part of a tool call. */
  readonly activity: () => void
}

/** A reply that reports an error, or breaks the protocol. */
export class BadReply extends Error {
  override name = 'BadReply'
}

interface Draft {
  id: string
  name: string
  arguments: string
}

/** Characters of a reply: an endpoint that floods must not fill the memory. */
const MAX_REPLY = 4 * 1024 * 1024
const MAX_CALLS = 64

/**
 * Collects a reply from the pieces of a stream, or from the one piece of an endpoint that does not
 * stream.
 */
export function createReply(listener: ReplyListener): {
  /** Takes the text of one `data:` line; throws `BadReply`. */
  take(data: string): void
  readonly reply: Reply
} {
  const drafts = new Map<number, Draft>()
  let [text, size] = ['', 0]
  let usage: Usage | undefined
  let finish: string | null = null

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
    const draft = drafts.get(index) ?? { id: '', name: '', arguments: '' }
    drafts.set(index, draft)
    const written = objectOf(piece['function'])
    if (id !== '') draft.id = id
    if (draft.name === '') draft.name = stringOf(written['name']) ?? ''
    draft.arguments += stringOf(written['arguments']) ?? ''
  }

  function indexOf(id: string): number {
    const known = [...drafts].find(([, draft]) => id !== '' && draft.id === id)?.[0]
    const last = Math.max(-1, ...drafts.keys())
    if (known !== undefined) return known
    return id === '' && last >= 0 ? last : last + 1
  }

  return {
    take,
    get reply() {
      const ordered = [...drafts].toSorted(([a], [b]) => a - b)
      const toolCalls = ordered.map(([at, draft]) => ({ ...draft, id: draft.id || `call_${at}` }))
      return { text, toolCalls, usage, finish }
    },
  }
}

/** The `data:` lines of an event stream. Throws `BadReply` for a line that never ends. */
export async function* dataLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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
export function errorText(value: unknown): string {
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
