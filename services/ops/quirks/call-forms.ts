import { isObject, objectOf, parseJson, stringOf, type JsonObject } from '../../../kernel/json.ts'

/** A call of a tool that a model wrote as text. */
export interface WrittenCall {
  name: string
  /** JSON of an object. */
  arguments: string
}

/** What stands between two marks of calls; undefined if no call can be read from it. */
type Read = (body: string, offered: readonly string[]) => readonly WrittenCall[] | undefined

/**
 * How models write calls where the server does not turn them into the protocol: the mark before,
 * and the one after, which a server may have cut off. Every form is read by the same readers.
 */
export const CALL_FORMS: readonly (readonly [before: RegExp, after: RegExp])[] = [
  // Qwen, Hermes, GLM, Granite, Phi, Nemotron, MiniMax, Claude's older form.
  [
    /<\|?(?:\w+:)?(?:tool|function)_?calls?\|?>/gi,
    /<\|?\/(?:\w+:)?(?:tool|function)_?calls?\|?>/gi,
  ],
  // Qwen Coder and Llama 3.1 without anything around.
  [/(?=<function=|<invoke name=)/g, /<\/(?:function|invoke)>(?:\s*<\/tool_call>)?/g],
  // Mistral.
  [/\[TOOL_CALLS\]/g, /\[\/TOOL_CALLS\]|<\/s>/g],
  // Llama.
  [/<\|python_tag\|>/g, /<\|(?:eom_id|eot_id)\|>/g],
  // DeepSeek.
  [/<｜tool▁calls▁begin｜>/g, /<｜tool▁calls▁end｜>/g],
  // Kimi.
  [/<\|tool_calls_section_begin\|>/g, /<\|tool_calls_section_end\|>/g],
  // gpt-oss; the name stands before or after its channel.
  [
    /<\|start\|>assistant(?= to=)|(?:<\|start\|>assistant)?<\|channel\|>commentary (?=to=)/g,
    /<\|call\|>/g,
  ],
  // Command R.
  [/<\|START_ACTION\|>/g, /<\|END_ACTION\|>/g],
  // Phi and Firefunction.
  [/\bfunctools(?=\[)/g, /$/g],
  // Gemma: Python in a block.
  [/```(?:tool_code|tool_call|tool_use)\n/g, /```/g],
]

/** Reads the calls of a body, in the first way that gives any. */
export function readCalls(
  body: string,
  offered: readonly string[],
): readonly WrittenCall[] | undefined {
  for (const read of READERS) {
    const calls = read(body, offered)
    if (calls !== undefined && calls.length > 0) return calls
  }
  return undefined
}

/**
 * The name of the offered tool that a model means: `functions.run_check`, `run_check:0` and
 * `run_check<|channel|>commentary` are `run_check`. Undefined if it means none.
 */
export function offeredName(name: string, offered: readonly string[]): string | undefined {
  const [plain = ''] = name.trim().split(/<\||<｜/)
  const bare = plain.replace(/^(?:functions?|tools?|default_api)[.:/]/, '').replace(/:\d+$/, '')
  return [name, plain, bare].find((one) => offered.includes(one))
}

const NAMES = ['name', 'tool_name', 'tool', 'function', 'action']
const ARGUMENTS = ['arguments', 'parameters', 'args', 'tool_input', 'action_input']

/**
 * Reads calls from a JSON value: `{"name": …, "arguments": …}`, a list of them, or one of the
 * other forms that models write. Undefined if the value is no call.
 */
export function callsIn(value: unknown): readonly WrittenCall[] | undefined {
  if (Array.isArray(value)) {
    const calls = value.map(callsIn)
    return calls.length > 0 && calls.every((one) => one !== undefined) ? calls.flat() : undefined
  }
  if (!isObject(value)) return undefined
  const { tool_calls = value['toolcalls'], function: inner } = value
  if (tool_calls !== undefined) return callsIn(tool_calls)
  if (isObject(inner)) return callsIn(inner)
  const name = NAMES.map((key) => stringOf(value[key])).find((one) => one !== undefined)
  const args = ARGUMENTS.map((key) => value[key]).find((one) => one !== undefined)
  const members = isObject(args) ? args : parseJson(stringOf(args) ?? '')
  if (name === undefined || !isObject(members)) return undefined
  return [callOf(name, members)]
}

function callOf(name: string, args: JsonObject): WrittenCall {
  return { name, arguments: JSON.stringify(args) }
}

/** A JSON value in a text: where it begins and ends. */
export interface FoundJson {
  from: number
  to: number
  value: unknown
}

/** The next object or list in a text, from a place on; its value is undefined if it is broken. */
export function nextJson(text: string, start: number): FoundJson | undefined {
  const from = start + text.slice(start).search(/[{[]/)
  if (from < start) return undefined
  let depth = 0
  let inString = false
  for (let at = from; at < text.length; at++) {
    const character = text[at]
    if (inString && character === '\\') at++
    else if (character === '"') inString = !inString
    else if (!inString && (character === '{' || character === '[')) depth++
    else if (!inString && (character === '}' || character === ']')) depth--
    if (depth === 0) return { from, to: at + 1, value: parseJson(text.slice(from, at + 1)) }
  }
  return { from, to: text.length, value: undefined }
}

/** Mistral's, between a name and its arguments. */
const SEPARATOR = /\[(?:ARGS|CALL_ID)\]/g

/** Objects that are calls, or the arguments of the tool that is named before them. */
const readJsonCalls: Read = (body, offered) => {
  const text = body.replaceAll(SEPARATOR, ' ')
  const calls: WrittenCall[] = []
  let at = 0
  for (let found = nextJson(text, 0); found !== undefined; found = nextJson(text, at)) {
    const { from, to, value } = found
    const words = text.slice(at, from).match(/[\w.:-]+/g) ?? []
    const named = words.findLast((word) => offeredName(word, offered) !== undefined)
    const alone = stringOf(objectOf(value)['name'])
    const written = callsIn(value)
    at = to
    if (written !== undefined) calls.push(...written)
    else if (named !== undefined && isObject(value)) calls.push(callOf(named, value))
    else if (alone !== undefined && offeredName(alone, offered)) calls.push(callOf(alone, {}))
    else return undefined
  }
  return calls
}

const FUNCTION_END = String.raw`<\/(?:function|invoke)>|(?=<function=|<invoke )|$`
const TAGGED = new RegExp(
  `<(?:function=|invoke name=")(?<name>[\\w.:-]+)"?>(?<inside>[^]*?)(?:${FUNCTION_END})`,
  'g',
)
const PARAMETER_END = String.raw`<\/parameter>|(?=<parameter[ =])|$`
const PARAMETER = new RegExp(
  `<parameter(?:=|\\s+name=")(?<name>[\\w.-]+)"?[^>]*>(?<value>[^]*?)(?:${PARAMETER_END})`,
  'g',
)

/** Tags: `<function=NAME><parameter=KEY>VALUE</parameter></function>`. */
const readTags: Read = (body) =>
  [...body.replaceAll('｜DSML｜', '').matchAll(TAGGED)].map(({ groups = {} }) => {
    const { name = '', inside = '' } = groups
    const members = [...inside.matchAll(PARAMETER)].map(({ groups: part = {} }) => {
      return [part['name'] ?? '', (part['value'] ?? '').replace(/^\n|\n$/g, '')] as const
    })
    return callOf(
      name,
      members.length > 0 ? Object.fromEntries(members) : objectOf(parseJson(inside)),
    )
  })

const PAIR = /<arg_key>([\s\S]*?)<\/arg_key>\s*<arg_value>([\s\S]*?)<\/arg_value>/g

/** GLM: the name, and then pairs of tags. A name alone is a call without arguments. */
const readPairs: Read = (body, offered) => {
  const [first = ''] = body.split('<arg_key>')
  const name = offeredName(first.trim(), offered)
  if (name === undefined) return undefined
  const pairs = [...body.matchAll(PAIR)].map(([, key = '', value = '']) => [key.trim(), value])
  return [callOf(name, Object.fromEntries(pairs))]
}

const PYTHON_CALL = /([\w.]+)\(((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^"'()])*)\)/g
const PYTHON_ARGUMENT = /(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\[[^\]]*\]|[\w.+-]+)/g
const PYTHON_WORDS: Readonly<Record<string, unknown>> = { True: true, False: false, None: null }

/** Llama and Gemma: `[run_check(service="shop")]`, with named arguments. */
export const readPython: Read = (body, offered) => {
  return [...body.matchAll(PYTHON_CALL)].flatMap(([, name = '', inside = '']) => {
    if (offeredName(name, offered) === undefined) return []
    const members = [...inside.matchAll(PYTHON_ARGUMENT)].map(([, key = '', value = '']) => {
      return [key, pythonValue(value)] as const
    })
    return [callOf(name, Object.fromEntries(members))]
  })
}

function pythonValue(text: string): unknown {
  if (text in PYTHON_WORDS) return PYTHON_WORDS[text]
  const quoted = text.replaceAll(/'((?:[^'\\]|\\.)*)'/g, (_, inside: string) =>
    JSON.stringify(inside.replaceAll(String.raw`\'`, "'")),
  )
  return parseJson(quoted) ?? text
}

const READERS: readonly Read[] = [readTags, readPairs, readJsonCalls, readPython]
