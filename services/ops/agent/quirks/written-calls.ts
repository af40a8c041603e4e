import { isObject, parseJson, stringOf, type JsonObject } from '../../../../kernel/json.ts'

/** A call of a tool that a model wrote as text. */
export interface WrittenCall {
  name: string
  /** JSON of an object. */
  arguments: string
}

/** What a model's text holds besides what it says. */
export interface Written {
  /** The text without the calls. */
  text: string
  /** Calls of offered tools. */
  calls: readonly WrittenCall[]
  /** Whether a call was meant, and none can be made of it. */
  isBroken: boolean
}

/** A part of a text that is meant as a call; undefined if no call can be read from it. */
interface Block {
  from: number
  to: number
  calls: readonly WrittenCall[] | undefined
}

export const CALL_START = '<tool_call>'
const CALL_END = '</tool_call>'
export const FENCE = '```'
/** A reply with more of them is not a reply: the rest stays text. */
const MAX_BLOCKS = 64

/**
 * Finds the calls of tools that a model wrote as text, because its server does not turn them into
 * the protocol: `<tool_call>` with JSON in it, and JSON in a fence of Markdown.
 */
export function readWrittenCalls(text: string, offered: readonly string[]): Written {
  const blocks = blocksOf(text)
  if (blocks.length === 0) {
    // The description of a tool says in which form it can be called.
    const isBroken = callsIn(parseJson(text)) !== undefined
    return { text: text.trim(), calls: [], isBroken }
  }
  const known = blocks.flatMap(({ calls = [] }) =>
    calls.flatMap((call) => {
      const name = offeredName(call.name, offered)
      return name === undefined ? [] : [{ ...call, name }]
    }),
  )
  // What comes after a call is what the model imagines of its result.
  const said = text.slice(0, blocks[0]?.from).trim()
  return { text: said, calls: known, isBroken: known.length === 0 }
}

/** The blocks of a text in their order, read forward only. */
function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = []
  for (let at = 0; blocks.length < MAX_BLOCKS;) {
    const mark = nextMark(text, at)
    if (mark === undefined) break
    const block = mark.kind === 'call' ? callBlock(text, mark.at) : fencedBlock(text, mark.at)
    if (block.calls !== undefined || mark.kind === 'call') blocks.push(block)
    at = block.to
  }
  return blocks
}

function nextMark(text: string, from: number) {
  const call = text.indexOf(CALL_START, from)
  const fence = fenceAt(text, from)
  if (call >= 0 && (fence < 0 || call < fence)) return { kind: 'call', at: call } as const
  return fence < 0 ? undefined : ({ kind: 'fence', at: fence } as const)
}

/** The next fence at the beginning of a line; -1 without one. */
function fenceAt(text: string, from: number): number {
  if (from === 0 && text.startsWith(FENCE)) return 0
  const found = text.indexOf(`\n${FENCE}`, Math.max(0, from - 1))
  return found < 0 ? found : found + 1
}

/** Up to the end mark, which may have been a stop word of the server, or to the next call. */
function callBlock(text: string, from: number): Block {
  const start = from + CALL_START.length
  const end = text.indexOf(CALL_END, start)
  const next = text.indexOf(CALL_START, start)
  const isClosed = end >= 0 && (next < 0 || end < next)
  const stop = isClosed ? end : next < 0 ? text.length : next
  const calls = callsIn(parseJson(text.slice(start, stop)))
  return { from, to: isClosed ? end + CALL_END.length : stop, calls }
}

/** Up to the fence that closes it, or to the end of the text. */
function fencedBlock(text: string, from: number): Block {
  const line = text.indexOf('\n', from)
  const start = line < 0 ? text.length : line + 1
  const close = fenceAt(text, start)
  const stop = close < 0 ? text.length : close
  const to = close < 0 ? text.length : close + FENCE.length
  return { from, to, calls: callsIn(parseJson(text.slice(start, stop))) }
}

/**
 * The name of the offered tool that a model means: `functions.run_check` and `run_check:0` are
 * `run_check`. Undefined if it means none.
 */
export function offeredName(name: string, offered: readonly string[]): string | undefined {
  const [plain = ''] = name.trim().split('<|')
  const bare = plain.replace(/^(?:functions?|tools?|default_api)[.:/]/, '').replace(/:\d+$/, '')
  return [name, plain, bare].find((one) => offered.includes(one))
}

const NAMES = ['name', 'tool_name', 'tool', 'function', 'action']
const ARGUMENTS = ['arguments', 'parameters', 'args', 'tool_input', 'action_input']

/**
 * Reads calls from a JSON value: `{"name": …, "arguments": …}`, a list of them, or one of the
 * other names that models write. Undefined if the value is not a call.
 */
function callsIn(value: unknown): readonly WrittenCall[] | undefined {
  const list = Array.isArray(value) ? value : [value]
  const calls = list.slice(0, MAX_BLOCKS).map(callIn)
  return calls.every((call) => call !== undefined) && calls.length > 0 ? calls : undefined
}

function callIn(value: unknown): WrittenCall | undefined {
  if (!isObject(value)) return undefined
  const { function: inner } = value
  const call: JsonObject = isObject(inner) ? inner : value
  const name = NAMES.map((key) => stringOf(call[key])).find((one) => one !== undefined)
  const given = ARGUMENTS.map((key) => call[key]).find((one) => one !== undefined)
  const members = isObject(given) ? given : parseJson(stringOf(given) ?? '')
  if (name === undefined || !isObject(members)) return undefined
  return { name, arguments: JSON.stringify(members) }
}
