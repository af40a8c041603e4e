import {
  isList,
  numberOf,
  objectOf,
  objectsOf,
  parseJson,
  parseObject,
  stringOf,
  type JsonObject,
} from '../../../../kernel/json.ts'

/** A message of a conversation, as the protocol has it. */
export interface Message {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: string
  /** Of an assistant that calls tools. */
  tool_calls?: readonly object[]
  /** Of a tool: the call that it answers. */
  tool_call_id?: string
  /** Of an assistant: DeepSeek wants its reasoning back with its tool calls. */
  reasoning_content?: string
}

/** A tool call, as the model wrote it. */
export interface ToolCall {
  id: string
  name: string
  /** Should be JSON, but a model may err. */
  arguments: string
  /** What the endpoint wants back with the call: Gemini's signature of its thoughts. */
  extra_content?: unknown
}

export interface Usage {
  prompt: number
  cached: number
  completion: number
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

export type Reply = ReturnType<typeof createReply>['reply']

/** A reply that reports an error, or breaks the protocol. */
export class BadReply extends Error {
  override name = 'BadReply'
}

/** A reply of something else than a model: to ask again is of no use. */
export class ForeignReply extends BadReply {}

/** Who hears what comes of a reply. */
interface ReplyListener {
  /** Called for each piece of text that comes. */
  text?: (piece: string) => void
}

const MAX_CALLS = 64
/** Characters of a reply that are read: text, reasoning and arguments together. */
const MAX_REPLY = 64 * 1024

/**
 * Collects a reply from the pieces of a stream, or from the one piece of an endpoint that does not
 * stream.
 */
export function createReply(listener: ReplyListener) {
  const drafts: Draft[] = []
  let text = ''
  let reasoning = ''
  /** Undefined if the endpoint does not count. */
  let usage: Usage | undefined
  /** Why the reply ended; null if the endpoint did not say. */
  let finish: string | null = null
  let left = MAX_REPLY
  let isCut = false

  /** The part of a piece that there is room for. */
  function bounded(piece: string): string {
    const taken = piece.slice(0, left)
    left -= taken.length
    isCut ||= taken.length < piece.length
    return taken
  }

  /** Takes the text of one `data:` line, or a whole reply; throws `BadReply`. */
  function take(data: string): void {
    const piece = parseObject(data)
    if (piece === undefined) throw new BadReply('the answer has a line that is no JSON object')
    const error = piece['error']
    if (error !== undefined && error !== null) throw new BadReply(errorText(error))
    usage = readUsage(piece['usage']) ?? usage
    const [choice] = objectsOf(piece['choices'])
    if (choice === undefined) return
    finish = stringOf(choice['finish_reason']) ?? finish
    const delta = objectOf(choice['delta'] ?? choice['message'])
    const content = bounded(textOf(delta['content']))
    if (content !== '') {
      text += content
      listener.text?.(content)
    }
    reasoning += bounded(stringOf(delta['reasoning_content']) ?? '')
    for (const call of objectsOf(delta['tool_calls'])) addCall(drafts, call, bounded)
  }

  return {
    take,
    get reply() {
      return { text, reasoning, toolCalls: toolCallsOf(drafts), usage, finish, isCut }
    },
  }
}

/** A tool call that comes in pieces. */
interface Draft extends ToolCall {
  index: number | undefined
}

/** The pieces of a call have the same index; without one, every new id begins a call. */
function addCall(drafts: Draft[], piece: JsonObject, bounded: (text: string) => string): void {
  const id = stringOf(piece['id']) ?? ''
  const index = numberOf(piece['index'])
  const written = objectOf(piece['function'])
  const name = bounded(stringOf(written['name']) ?? '')
  const args = bounded(argumentText(written['arguments']))
  const same = drafts.findLast((draft) =>
    index === undefined ? id === '' || draft.id === id : draft.index === index,
  )
  if (same === undefined || isNext(same, { id, name, arguments: args })) {
    if (drafts.length >= MAX_CALLS) throw new BadReply('too many tool calls')
    drafts.push({ index, id, name, arguments: args, extra_content: piece['extra_content'] })
    return
  }
  same.id ||= id
  same.name ||= name
  same.arguments += args
  same.extra_content ??= piece['extra_content']
}

/** Ollama and adapters of Gemini give all calls the same index. */
function isNext(draft: Draft, piece: ToolCall): boolean {
  if (piece.name === '' || draft.name === '') return false
  if (piece.id !== '' && draft.id !== '') return piece.id !== draft.id
  return piece.arguments !== '' && parseJson(draft.arguments) !== undefined
}

/** Some endpoints give an object in place of its JSON. */
function argumentText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return stringOf(value) ?? JSON.stringify(value)
}

/** In the order in which they began, by index where there is one; each with an id of its own. */
function toolCallsOf(drafts: readonly Draft[]): readonly ToolCall[] {
  const ordered = drafts.toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
  const ids = new Set<string>()
  return ordered.map(({ index: _index, id: given, ...call }, at) => {
    const id = given === '' || ids.has(given) ? `call_${at}` : given
    ids.add(id)
    return { id, ...call }
  })
}

/** The text of a message's content, which may be a list of parts. */
function textOf(content: unknown): string {
  if (!isList(content)) return stringOf(content) ?? ''
  return content.map((part) => stringOf(part) ?? stringOf(objectOf(part)['text']) ?? '').join('')
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
