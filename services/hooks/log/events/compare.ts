import { type EventDetail, prettyPayload } from './detail.ts'
import { type JsonNode, readJson } from './json-nodes.ts'

/** What an event has at a place, and what the other one has there; null where it has nothing. */
export interface Difference {
  /** The path of a member, the number of a line, or the name of a header. */
  at: string
  own: string | null
  other: string | null
}

/** How an event differs from another one. */
export interface Comparison {
  /** The id of the other one. */
  other: number
  /**
   * What the places of `payload` are. `same`: the bytes are; `bytes`: one of both is not text; `too
   * long`: the paths of what differs are, so that the list is not complete.
   */
  by: 'same' | 'members' | 'lines' | 'bytes' | 'too long'
  payload: Differences
  headers: Differences
}

interface Differences {
  listed: readonly Difference[]
  /** How many there are beyond those that are listed. */
  more: number
}

const MAX_LISTED = 200
/** Characters of a value, and of a path, that are shown. */
const MAX_VALUE = 500
const MAX_PATH = 200
const JSON_BOUNDS = { nodes: 20_000, depth: 100 }
/** All paths that differ together, in characters: long names would stand in each of them. */
const MAX_PATHS = 1024 * 1024
/** The maximum number of pairs of lines. Longer texts are compared line by line, from the first. */
const MAX_PAIRS = 1_000_000

/** Compares two events by the members of their JSON, else by the lines of their text. */
export function compareEvents(own: EventDetail, other: EventDetail): Comparison {
  const [names, otherNames] = [own, other].map(({ headers }) => new Map(Object.entries(headers)))
  const headers = createList()
  for (const at of new Set([...(names?.keys() ?? []), ...(otherNames?.keys() ?? [])])) {
    headers.add(() => at, names?.get(at), otherNames?.get(at))
  }
  const payload = createList()
  const by = comparePayloads(own, other, payload)
  return { other: other.id, by, payload: payload.result(), headers: headers.result() }
}

/** How the answers to two attempts differ: by the members of their JSON, else by lines. */
export function compareAnswers(own: string, other: string): Pick<Comparison, 'by' | 'payload'> {
  const list = createList()
  return { by: comparePayloads(textOf(own), textOf(other), list), payload: list.result() }
}

/** What is compared of an event, and of other texts. */
type Text = Pick<EventDetail, 'payload' | 'payload_encoding' | 'payload_size' | 'content_type'>

function textOf(payload: string): Text {
  const payload_size = Buffer.byteLength(payload)
  return { payload, payload_encoding: 'utf8', payload_size, content_type: null }
}

function comparePayloads(own: Text, other: Text, list: List): Comparison['by'] {
  const encodings = [own.payload_encoding, other.payload_encoding]
  if (own.payload === other.payload && encodings[0] === encodings[1]) return 'same'
  if (encodings.includes('base64')) return 'bytes'
  const members = readJson(own.payload, JSON_BOUNDS)
  const others = members && readJson(other.payload, JSON_BOUNDS)
  if (members === undefined || others === undefined) {
    addLines(linesOf(own), linesOf(other), list)
    return 'lines'
  }
  let characters = 0
  eachDifference(members, others, (one, another) => {
    const { steps } = one ?? another ?? members
    characters += pathLength(steps)
    if (characters <= MAX_PATHS) list.add(() => pathOf(steps), one?.source, another?.source)
  })
  return characters <= MAX_PATHS ? 'members' : 'too long'
}

/** Differences of a kind: the first ones, and how many there are beyond them. */
type List = ReturnType<typeof createList>

function createList() {
  const listed: Difference[] = []
  let more = 0
  return {
    /** Adds what differs; `at` is asked for what is listed only. */
    add(at: () => string, own: string | undefined, other: string | undefined) {
      if (own === other) return
      if (listed.length < MAX_LISTED) {
        listed.push({ at: cutMiddle(at()), own: cutEnd(own), other: cutEnd(other) })
      } else more++
    },
    result: (): Differences => ({ listed, more }),
  }
}

function cutEnd(text: string | undefined): string | null {
  if (text === undefined) return null
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text
}

/** The end of a path says more than its middle. */
function cutMiddle(path: string): string {
  if (path.length <= MAX_PATH) return path
  return `${path.slice(0, MAX_PATH / 2)}…${path.slice(-MAX_PATH / 2)}`
}

/** Calls back with the values of two JSON texts at each place where one differs or is missing. */
function eachDifference(
  own: JsonNode | undefined,
  other: JsonNode | undefined,
  found: (own: JsonNode | undefined, other: JsonNode | undefined) => void,
) {
  const [value, otherValue] = [own, other].map((node) => (node?.members.length ? undefined : node))
  if (value?.source !== otherValue?.source) found(value, otherValue)
  const members = new Map(own?.members.map(({ key, node }) => [key, node]))
  const others = new Map(other?.members.map(({ key, node }) => [key, node]))
  for (const [key, node] of members) eachDifference(node, others.get(key), found)
  for (const [key, node] of others) if (!members.has(key)) eachDifference(undefined, node, found)
}

function pathLength(steps: readonly string[]): number {
  return steps.reduce((sum, { length }) => sum + length + 1, 0)
}

/** `items.0.id`, as the filter of the log has it; other names stand in brackets. */
function pathOf(steps: readonly string[]): string {
  const parts = steps.map((step) => {
    return /^[\w-]+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
  })
  return parts.join('').replace(/^\./, '') || '(whole payload)'
}

/** Longer payloads are compared as they were sent: each of their values would be a line. */
const MAX_INDENTED = 512 * 1024

function linesOf(event: Text): readonly string[] {
  const isShort = event.payload_size <= MAX_INDENTED
  return ((isShort ? prettyPayload(event) : null) ?? event.payload).split('\n')
}

/** Adds the lines between the beginning and the end that both texts share. */
function addLines(own: readonly string[], other: readonly string[], list: List) {
  const shorter = Math.min(own.length, other.length)
  let start = 0
  while (start < shorter && own[start] === other[start]) start++
  let end = 0
  while (end < shorter - start && own.at(-1 - end) === other.at(-1 - end)) end++
  const left = own.slice(start, own.length - end)
  const right = other.slice(start, other.length - end)
  const kept = left.length * right.length <= MAX_PAIRS ? commonLines(left, right) : []
  let [i, j] = [0, 0]
  for (const [nextOwn, nextOther] of [...kept, [left.length, right.length] as const]) {
    for (; i < nextOwn || j < nextOther; i++, j++) {
      const [mine, theirs] = [
        i < nextOwn ? left[i] : undefined,
        j < nextOther ? right[j] : undefined,
      ]
      const line = start + (mine === undefined ? j : i) + 1
      list.add(() => `line ${line}`, mine, theirs)
    }
    i = nextOwn + 1
    j = nextOther + 1
  }
}

/** The longest list of lines that both texts have in the same order: the places of each. */
function commonLines(
  ownLines: readonly string[],
  otherLines: readonly string[],
): readonly (readonly [own: number, other: number])[] {
  // Numbers for lines: comparing long lines that differ at their end would take long.
  const numbers = new Map<string, number>()
  const numberOf = (line: string) => numbers.getOrInsertComputed(line, () => numbers.size)
  const [own, other] = [ownLines.map(numberOf), otherLines.map(numberOf)]
  const width = other.length + 1
  // lengths[i * width + j]: the length of the list from line i of one and line j of the other on.
  const lengths = new Uint16Array((own.length + 1) * width)
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0
  for (let i = own.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        own[i] === other[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const found: [number, number][] = []
  for (let [i, j] = [0, 0]; i < own.length && j < other.length;) {
    if (own[i] === other[j]) found.push([i++, j++])
    else if (at(i + 1, j) >= at(i, j + 1)) i++
    else j++
  }
  return found
}
