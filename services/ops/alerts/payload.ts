/** A JSON object as it came. */
export type Members = Readonly<Record<string, unknown>>

/** A delivery's body, read as far as it can be. */
export interface Payload {
  /** As the model is given it: without the tier. */
  readonly text: string
  /** What it says when it is JSON; undefined for all other text. */
  readonly value: unknown
  /** The tier that it asks for, whether it is allowed or not. */
  readonly tier: number
}

const FIRST_TIER = 1
const LAST_TIER = 3

/**
 * Reads a body of any kind; bytes that are no UTF-8 become replacement characters. The top-level
 * `tier` of a JSON object is taken out whatever it is, and asks for something only as an integer from 1.
 */
export function readPayload(bytes: Uint8Array): Payload {
  // The database takes no NUL.
  const text = new TextDecoder().decode(bytes).replaceAll('\0', '\u{FFFD}')
  const value = parse(text)
  if (!isObject(value) || !('tier' in value)) return { text, value, tier: FIRST_TIER }
  const { tier, ...rest } = value
  const asks = typeof tier === 'number' && Number.isInteger(tier) && tier >= FIRST_TIER
  return { text: written(rest), value: rest, tier: asks ? Math.min(tier, LAST_TIER) : FIRST_TIER }
}

/** A JSON object as text; a member that is nested deeper than the stack reaches becomes a note. */
function written(members: Members): string {
  const parts = Object.entries(members).map(([name, value]) => {
    try {
      return `${JSON.stringify(name)}:${JSON.stringify(value)}`
    } catch {
      // RangeError: JSON.parse takes any depth, its counterpart does not.
      return `${JSON.stringify(name)}:"(nested too deep to be shown)"`
    }
  })
  return `{${parts.join(',')}}`.replaceAll('\0', '\u{FFFD}')
}

/** The member of a JSON object at a path of names and places in lists. */
export function memberAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value
  for (const name of path) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, name)) return undefined
    here = (here as Readonly<Record<string | number, unknown>>)[name]
  }
  return here
}

function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Plain text or a form, which are as good.
    return undefined
  }
}
