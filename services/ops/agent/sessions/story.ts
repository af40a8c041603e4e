import type { Database } from '../../../../db/client.ts'
import {
  sessionQueries as q,
  type CallLine,
  type Session,
  type StoredLine,
} from '../../../../db/ops/agent/sessions.ts'
import { isObject, parseJson } from '../../../../kernel/json.ts'

/** A session's output in turns, as people read it. */
export interface Story {
  turns: readonly Turn[]
  /** Number of the first line of the story; earlier lines are left out. */
  first: number
  hasEarlier: boolean
}

/** What the agent said and did between two answers of its tools. */
export interface Turn {
  /** What it took, such as `Turn 3: 1,204 tokens, $0.0021`; undefined where nobody said it. */
  title: string | undefined
  /** Milliseconds; undefined where its beginning is not known. */
  ms: number | undefined
  parts: readonly Part[]
}

/** Lines of one kind in a row, or a tool call. */
export type Part = Passage | Call

interface Passage {
  type: 'passage'
  kind: string
  text: string
  at: Date
}

/** A tool call with its result. */
export interface Call {
  type: 'call'
  number: number
  name: string
  /** As JSON with an indent, or as the agent wrote them. */
  args: string
  result: string
  /** Undefined while there is no result. */
  ok: boolean | undefined
  /** Milliseconds; undefined while there is no result. */
  ms: number | undefined
  /** Whether more of it is stored than this. */
  isCut: boolean
}

/** A line of a call, of which the story has the beginning. */
type ToldLine = StoredLine & { cut?: boolean }

const MAX_CALLS = 100
/** Lines and characters of a call in the story. */
const MAX_CALL_LINES = 8
const MAX_CHARACTERS = 2_000
const MAX_OTHER_LINES = 500
/** Lines of a call that is shown as a whole. */
const MAX_WHOLE_LINES = 500

/** Reads the newest part of a story; all of it, unless it is very long. */
export async function readStory(
  db: Database,
  { id, started_at }: Pick<Session, 'id' | 'started_at'>,
): Promise<Story> {
  const [others, calls] = await Promise.all([
    q.listOtherLines(db, { session: id, limit: MAX_OTHER_LINES + 1 }),
    q.listCallLines(db, {
      session: id,
      calls: MAX_CALLS,
      // One more tells whether there are more.
      each: MAX_CALL_LINES + 1,
      characters: MAX_CHARACTERS,
      limit: MAX_CALLS * (MAX_CALL_LINES + 1),
    }),
  ])
  const first = firstTold(others, calls)
  const lines = [...others.slice(0, MAX_OTHER_LINES), ...calls]
    .filter(({ seq }) => seq >= first)
    .toSorted((a, b) => a.seq - b.seq)
  const hasEarlier = first > 1
  return { turns: turnsOf(lines, hasEarlier ? undefined : started_at), first, hasEarlier }
}

/** A tool call with all of its stored lines, up to a limit; undefined for an unknown call. */
export async function readCall(
  db: Database,
  session: number,
  call: number,
): Promise<Call | undefined> {
  const lines = await q.listLinesOfCall(db, { session, call, limit: MAX_WHOLE_LINES + 1 })
  return lines.length === 0 ? undefined : callOf(call, lines, MAX_WHOLE_LINES)
}

/** Where the story begins: one of the two lists was cut off before this line. */
function firstTold(others: readonly StoredLine[], calls: readonly CallLine[]): number {
  const fromOthers = others.length > MAX_OTHER_LINES ? (others.at(-2)?.seq ?? 1) : 1
  const [firstCall] = calls
  const fromCalls = firstCall !== undefined && firstCall.call > 1 ? firstCall.seq : 1
  return Math.max(fromOthers, fromCalls)
}

/** A turn ends with a line of kind `turn`, which the last turn may lack. */
function turnsOf(lines: readonly ToldLine[], start: Date | undefined): readonly Turn[] {
  const turns: Turn[] = []
  let open: ToldLine[] = []
  let since = start
  for (const line of lines) {
    if (line.kind !== 'turn') open.push(line)
    else {
      turns.push({ title: line.text, ms: between(since, line.at), parts: partsOf(open) })
      open = []
      since = line.at
    }
  }
  const last = open.at(-1)
  if (last === undefined) return turns
  return [...turns, { title: undefined, ms: between(since, last.at), parts: partsOf(open) }]
}

function partsOf(lines: readonly ToldLine[]): readonly Part[] {
  const calls = Map.groupBy(lines, ({ call }) => call)
  const parts: Part[] = []
  for (const { kind, text, at, call } of lines) {
    const before = parts.at(-1)
    if (call !== null) {
      // A call stands where its first line does.
      const own = calls.get(call)
      if (own !== undefined) parts.push(callOf(call, own, MAX_CALL_LINES))
      calls.delete(call)
    } else if (before?.type === 'passage' && before.kind === kind) before.text += `\n${text}`
    else parts.push({ type: 'passage', kind, text, at })
  }
  return parts
}

function callOf(number: number, lines: readonly ToldLine[], maxLines: number): Call {
  const told = lines.slice(0, maxLines)
  const asked = told.find(({ kind }) => kind === 'tool')
  const results = told.filter(({ kind }) => kind !== 'tool')
  const [result] = results
  const { name, args } = readAsked(asked?.text ?? 'an earlier call')
  return {
    type: 'call',
    number,
    name,
    args,
    result: results.map(({ text }) => text).join('\n'),
    ok: result === undefined ? undefined : result.kind !== 'error',
    ms: asked === undefined ? undefined : between(asked.at, result?.at),
    isCut: lines.length > maxLines || told.some(({ cut }) => cut === true),
  }
}

/** `run_check {"service":"shop"}`; a command of an agent has no name before it. */
function readAsked(text: string): Pick<Call, 'name' | 'args'> {
  const [, name = '', rest = ''] = /^([\w.:-]{1,100}) (\{[^]*)$/.exec(text) ?? []
  if (name === '') return { name: text, args: '' }
  const value = parseJson(rest)
  if (!isObject(value)) return { name, args: rest }
  return { name, args: Object.keys(value).length === 0 ? '' : JSON.stringify(value, null, 2) }
}

function between(from: Date | undefined, to: Date | undefined): number | undefined {
  if (from === undefined || to === undefined) return undefined
  return Math.max(0, to.getTime() - from.getTime())
}
