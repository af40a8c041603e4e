import { CALL_FORMS, callsIn, nextJson, offeredName, readCalls, readPython } from './call-forms.ts'
import type { WrittenCall } from './call-forms.ts'

/** What a model's text holds besides what it says. */
export interface Written {
  /** The text without the calls. */
  text: string
  /** Calls of offered tools. */
  calls: readonly WrittenCall[]
  /** Whether nothing of it is of use: what was meant as a call is none that can be made. */
  isBroken: boolean
}

/** A part of a text that is a call, with its marks, and what stands between them. */
interface Block {
  from: number
  to: number
  body: string
  calls: readonly WrittenCall[] | undefined
}

/** A reply with more of them is no reply. */
const MAX_BLOCKS = 64

/**
 * Finds the calls of tools that a model wrote as text (services/ops/quirks/call-forms.ts). `heard`
 * is what it was given to read: a call that stands there as well is a quotation. Somebody may have
 * put it into a log or an alert, and a model that quotes it must not run it.
 */
export function readWrittenCalls(
  given: string,
  offered: readonly string[],
  heard: () => readonly string[],
): Written {
  const text = given.replaceAll('｜DSML｜', '')
  const marked = markedBlocks(text, offered)
  const blocks = marked.length > 0 ? marked : plainBlocks(text, offered)
  if (blocks.length === 0) return { text: text.trim(), calls: [], isBroken: false }
  const read = heard().map(squeeze)
  const own = blocks.filter((block) => {
    const written = squeeze(quotable(text, block))
    return !read.some((one) => one.includes(written))
  })
  const calls = own.flatMap((block) => block.calls ?? [])
  const known = calls.flatMap((call) => {
    const name = offeredName(call.name, offered)
    return name === undefined ? [] : [{ ...call, name }]
  })
  // What comes after a call is what the model imagines of its result.
  if (known.length > 0) {
    return { text: text.slice(0, blocks[0]?.from).trim(), calls: known, isBroken: false }
  }
  const rest = withoutBlocks(text, blocks)
  const isUnread = own.some((block) => block.calls === undefined) || known.length < calls.length
  return { text: rest, calls: [], isBroken: isUnread || rest === '' }
}

/** Blocks between marks, in their order. */
function markedBlocks(text: string, offered: readonly string[]): readonly Block[] {
  const blocks: Block[] = []
  let at = 0
  while (blocks.length < MAX_BLOCKS) {
    const first = firstForm(text, at)
    if (first === undefined) break
    const { from, start, before, after } = first
    const end = matchFrom(after, text, start)
    const next = matchFrom(before, text, start + 1)
    const isClosed = end !== undefined && (next === undefined || end.index <= next.index)
    const stop = isClosed ? end.index : (next?.index ?? text.length)
    const body = text.slice(start, stop)
    at = isClosed ? end.index + end[0].length : stop
    blocks.push({ from, to: at, body, calls: readCalls(body, offered) })
  }
  return blocks
}

/** The form whose mark stands first in a text, from a place on. */
function firstForm(text: string, at: number) {
  const found = CALL_FORMS.flatMap(([before, after]) => {
    const mark = matchFrom(before, text, at)
    if (mark === undefined) return []
    return [{ from: mark.index, start: mark.index + mark[0].length, before, after }]
  })
  return found.toSorted((a, b) => a.from - b.from)[0]
}

function matchFrom(pattern: RegExp, text: string, at: number) {
  const own = new RegExp(pattern)
  own.lastIndex = at
  return own.exec(text) ?? undefined
}

/** Where a call without marks may begin: on a line of its own, or after another one. */
const PLAIN_START = /(?:^[ \t]*|(?<=[}\]])\s*[;,]\s*)(?=[{[])/gm
/** Broken JSON that was meant as a call. */
const LOOKS_LIKE_CALL = /^\{\s*"(?:name|function|type|tool)"\s*:[^]*"(?:arguments|parameters)"\s*:/
const FENCE_BEFORE = /```\w*[ \t]*\n\s*$/
const FENCE_AFTER = /^\s*\n```/

/** Blocks of JSON that has the form of a call, alone or in a fence of Markdown. */
function plainBlocks(text: string, offered: readonly string[]): readonly Block[] {
  const blocks: Block[] = []
  let at = 0
  let tries = 0
  for (const { 0: space, index } of text.matchAll(PLAIN_START)) {
    if (index < at) continue
    // A model in a loop may write nothing but braces, and each is looked at up to the end.
    if (++tries > MAX_BLOCKS) break
    const found = nextJson(text, index + space.length)
    if (found === undefined) break
    const { from, to, value } = found
    const body = text.slice(from, to)
    const calls = value === undefined ? pythonCalls(body, offered) : callsIn(value)
    at = value === undefined ? at : to
    if (calls === undefined && !LOOKS_LIKE_CALL.test(body)) continue
    const before = FENCE_BEFORE.exec(text.slice(0, from))
    const after = before === null ? null : FENCE_AFTER.exec(text.slice(to))
    at = to + (after?.[0].length ?? 0)
    blocks.push({ from: before?.index ?? index, to: at, body, calls })
  }
  return blocks
}

function pythonCalls(body: string, offered: readonly string[]) {
  const calls = readPython(body, offered) ?? []
  return calls.length > 0 ? calls : undefined
}

function withoutBlocks(text: string, blocks: readonly Block[]): string {
  let at = 0
  const parts = blocks.map(({ from, to }) => {
    const part = text.slice(at, from)
    at = to
    return part
  })
  return [...parts, text.slice(at)].join('').trim()
}

/** What is looked for in what the model has read: the name of a tool alone stands there often. */
function quotable(text: string, { from, to, body }: Block): string {
  return body.includes('{') ? body : text.slice(from, to)
}

/** A text without what a quotation may add to it or leave out. */
function squeeze(text: string): string {
  return text.replaceAll(/\\[nrt]|[\s\\"'`]/g, '')
}
