import { parseJson } from '../../../../kernel/json.ts'
import { memberFilter } from './filter.ts'

/** A value of a JSON text, as it was sent: `JSON.parse` would round long numbers. */
export interface JsonNode {
  kind: 'object' | 'array' | 'string' | 'number' | 'word'
  /** The text of a string, a number or a word; a string has its quotes. */
  source: string
  /** What an object or an array contains, in its order. */
  members: readonly JsonMember[]
  /** The names that lead to it. */
  steps: readonly string[]
  /** The filter of the log that finds events with this value; null where no filter can. */
  filter: string | null
}

export interface JsonMember {
  /** The name of a member, or the place in an array. */
  key: string
  node: JsonNode
}

/** How much is taken apart: a page must stay small, and nested brackets would exhaust the stack. */
interface JsonBounds {
  nodes: number
  depth: number
}

/**
 * Whole strings, brackets, separators, and the text between them. A string without an end extends
 * to the end of the text: searching for its end from each place would take quadratic time.
 */
export const JSON_TOKEN = /"(?:[^"\\]|\\[^])*"?|[{}[\],:]|[^\s{}[\],:"]+/g

/** Takes JSON text apart. Undefined for text that is not JSON, or has more than the bounds. */
export function readJson(text: string, { nodes, depth }: JsonBounds): JsonNode | undefined {
  if (parseJson(text) === undefined) return undefined
  const root = containerOf('array', [])
  const open = [root]
  let count = 0
  let key: string | undefined
  for (const [token] of text.matchAll(JSON_TOKEN)) {
    const parent = open.at(-1) ?? root
    if (token === ',' || token === ':') continue
    if (token === '}' || token === ']') {
      open.pop()
    } else if (parent.kind === 'object' && key === undefined) {
      key = JSON.parse(token) as string
    } else {
      count++
      if (count > nodes || open.length > depth) return undefined
      key ??= String(parent.members.length)
      const steps = parent === root ? [] : [...parent.steps, key]
      const container = containerAt(token, steps)
      parent.members.push({ key, node: container ?? scalarAt(token, steps) })
      key = undefined
      if (container !== undefined) open.push(container)
    }
  }
  return root.members[0]?.node
}

interface Container extends JsonNode {
  members: JsonMember[]
}

function containerAt(token: string, steps: readonly string[]): Container | undefined {
  if (token === '{') return containerOf('object', steps)
  return token === '[' ? containerOf('array', steps) : undefined
}

function containerOf(kind: 'object' | 'array', steps: readonly string[]): Container {
  return { kind, source: kind === 'object' ? '{}' : '[]', members: [], steps, filter: null }
}

function scalarAt(source: string, steps: readonly string[]): JsonNode {
  const kind = source.startsWith('"') ? 'string' : /^[-\d]/.test(source) ? 'number' : 'word'
  return { kind, source, members: [], steps, filter: memberFilter(steps, source) }
}
