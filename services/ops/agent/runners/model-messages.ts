import { isObject, objectOf, parseJson } from '../../../../kernel/json.ts'
import { withoutReasoning } from '../quirks/reasoning.ts'
import { offeredName, readWrittenCalls, type Written } from '../quirks/written-calls.ts'
import type { Message, Reply, ToolCall } from './model-reply.ts'

/** A call of a tool as the model means it. */
export interface MeantCall {
  id: string
  /** Of an offered tool, or whatever the model wrote. */
  name: string
  /** As the model wrote them. */
  written: string
  /** Undefined if they are not JSON. */
  args: unknown
  /** What a call of the protocol may do, one in a text may not (`callTool`). */
  origin: 'protocol' | 'text'
  /** Goes back to the endpoint as it came. */
  extra_content?: unknown
}

/** A reply as the model means it. */
export interface Answer {
  calls: readonly MeantCall[]
  /** Without reasoning, and without calls that were written as text. */
  text: string
  /** The reply without its reasoning, as the next request repeats it. */
  said: string
  /** What the endpoint gave apart from the text. */
  reasoning: string
  /** Whether it meant to call a tool in a way that can't be understood. */
  isBroken: boolean
  /** Whether it was cut off at a limit of its length. */
  isCut: boolean
}

/**
 * Reads a reply in a conversation in which these tools are offered. `readsText` says whether calls
 * may stand in the text: not where the model has given calls of the protocol before.
 */
export function readAnswer(
  { text, reasoning, toolCalls, finish }: Reply,
  offered: readonly string[],
  readsText: boolean,
): Answer {
  const said = withoutReasoning(text)
  const plain: Written = { text: said, calls: [], isBroken: false }
  const written = readsText && toolCalls.length === 0 ? readWrittenCalls(said, offered) : plain
  const inText = written.calls.map((call, at) => {
    return meantCall({ ...call, id: `written_${at}` }, 'text', offered)
  })
  const calls = toolCalls.map((call) => meantCall(call, 'protocol', offered))
  return {
    calls: [...calls, ...inText],
    text: written.text,
    said,
    reasoning,
    isBroken: written.isBroken,
    isCut: finish === 'length',
  }
}

function meantCall(
  call: ToolCall,
  origin: MeantCall['origin'],
  offered: readonly string[],
): MeantCall {
  const { id, name, arguments: written, extra_content } = call
  const value = parseJson(written.trim() || '{}')
  // Some models encode them twice.
  const decoded = typeof value === 'string' ? (parseJson(value) ?? value) : value
  const args = decoded === null ? {} : decoded
  return { id, name: offeredName(name, offered) ?? name, written, args, origin, extra_content }
}

const NOTHING = '(nothing)'

/** The model's own answer as the next request repeats it. */
export function assistantMessage({ calls, text, said, reasoning }: Answer): Message {
  // Some endpoints reject an assistant's message that is empty.
  if (calls.length === 0) return { role: 'assistant', content: said || NOTHING }
  const tool_calls = calls.map(({ id, name, args, extra_content }) => {
    // Some reject a conversation with names or arguments that break the protocol, even if their
    // model wrote them.
    const plain = name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || 'unknown'
    const members = JSON.stringify(isObject(args) ? args : objectOf(undefined))
    const call = { id, type: 'function', function: { name: plain, arguments: members } }
    return extra_content === undefined ? call : { ...call, extra_content }
  })
  const thoughts = reasoning === '' ? {} : { reasoning_content: reasoning }
  return { role: 'assistant', content: text, ...thoughts, tool_calls }
}

const DROPPED = '(This result was dropped to make room. Call the tool again if you need it.)'
const CUT = '\n(The rest of this result was dropped to make room.)'
/** Characters of a result that is dropped as a whole. */
const SHORT = 1_000

/**
 * Makes room in a conversation: reasoning and the older half of the tool results are dropped, at
 * last the newest one, by halves. False if nothing is left to drop.
 */
export function dropOldest(messages: readonly Message[]): boolean {
  for (const message of messages) if (message.reasoning_content) message.reasoning_content = ''
  const results = messages.filter(({ role, content }) => role === 'tool' && content !== DROPPED)
  const newest = results.pop()
  if (newest === undefined) return false
  for (const result of results.slice(0, Math.ceil(results.length / 2))) result.content = DROPPED
  if (results.length > 0) return true
  const half = newest.content.slice(0, newest.content.length / 2).toWellFormed()
  newest.content = half.length > SHORT / 2 ? half + CUT : DROPPED
  return true
}
