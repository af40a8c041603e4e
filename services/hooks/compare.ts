import { type EventDetail, prettyPayload } from './event-detail.ts'
import { leavesOf, readJson } from './json-nodes.ts'

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
  /** What the places of `payload` are. `same`: the bytes are; `bytes`: one of both is no text. */
  by: 'same' | 'members' | 'lines' | 'bytes'
  payload: Differences
  headers: Differences
}

interface Differences {
  listed: readonly Difference[]
  /** How many there are beyond those that are listed. */
  more: number
}

const MAX_LISTED = 200
/** Characters of a value that are shown. */
const MAX_VALUE = 500
const JSON_BOUNDS = { nodes: 20_000, depth: 100 }
/** Pairs of lines that are looked at; of longer texts the first line is compared with the first. */
const MAX_PAIRS = 1_000_000

/** Compares two events by the members of their JSON, else by the lines of their text. */
export function compareEvents(own: EventDetail, other: EventDetail): Comparison {
  const headers = byName(
    new Map(Object.entries(own.headers)),
    new Map(Object.entries(other.headers)),
  )
  const result = (by: Comparison['by'], payload: readonly Difference[]): Comparison => {
    return { other: other.id, by, payload: listed(payload), headers: listed(headers) }
  }
  const encodings = [own.payload_encoding, other.payload_encoding]
  if (own.payload === other.payload && encodings[0] === encodings[1]) return result('same', [])
  if (encodings.includes('base64')) return result('bytes', [])
  const [members, others] = [membersOf(own), membersOf(other)]
  if (members !== undefined && others !== undefined) {
    return result('members', byName(members, others))
  }
  return result('lines', byLine(linesOf(own), linesOf(other)))
}

/** The values of a JSON payload by their paths. */
function membersOf({ payload }: EventDetail): ReadonlyMap<string, string> | undefined {
  const root = readJson(payload, JSON_BOUNDS)
  return root && new Map([...leavesOf(root)].map(({ steps, source }) => [pathOf(steps), source]))
}

/** `items.0.id`, as the filter of the log has it; other names stand in brackets. */
function pathOf(steps: readonly string[]): string {
  const parts = steps.map((step) => {
    return /^[\w-]+$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
  })
  return parts.join('').replace(/^\./, '') || '(whole payload)'
}

function linesOf(event: EventDetail): readonly string[] {
  return (prettyPayload(event) ?? event.payload).split('\n')
}

function byName(
  own: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
): readonly Difference[] {
  const names = new Set([...own.keys(), ...other.keys()])
  return [...names]
    .map((at) => ({ at, own: own.get(at) ?? null, other: other.get(at) ?? null }))
    .filter((difference) => difference.own !== difference.other)
}

/** The lines between the beginning and the end that both texts share. */
function byLine(own: readonly string[], other: readonly string[]): readonly Difference[] {
  const shorter = Math.min(own.length, other.length)
  let start = 0
  while (start < shorter && own[start] === other[start]) start++
  let end = 0
  while (end < shorter - start && own.at(-1 - end) === other.at(-1 - end)) end++
  const [left, right] = [
    own.slice(start, own.length - end),
    other.slice(start, other.length - end),
  ]
  const kept = left.length * right.length <= MAX_PAIRS ? commonLines(left, right) : []
  const found: Difference[] = []
  let [i, j] = [0, 0]
  for (const [nextOwn, nextOther] of [...kept, [left.length, right.length] as const]) {
    for (; i < nextOwn || j < nextOther; i++, j++) {
      const [mine, theirs] = [i < nextOwn ? left[i] : null, j < nextOther ? right[j] : null]
      if (mine === theirs) continue
      const line = start + (mine === null ? j : i) + 1
      found.push({ at: `line ${line}`, own: mine ?? null, other: theirs ?? null })
    }
    i = nextOwn + 1
    j = nextOther + 1
  }
  return found
}

/** The longest list of lines that both texts have in the same order: the places of each. */
function commonLines(
  own: readonly string[],
  other: readonly string[],
): readonly (readonly [own: number, other: number])[] {
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

function listed(all: readonly Difference[]): Differences {
  const cut = (text: string | null): string | null => {
    return text !== null && text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text
  }
  const shown = all.slice(0, MAX_LISTED)
  return {
    listed: shown.map(({ at, own, other }) => ({ at, own: cut(own), other: cut(other) })),
    more: all.length - shown.length,
  }
}
