import { stepsOf } from './json.ts'

// Members of JSON as people name them, and numbers as a JSON text has them.

/** A step of a path: letters, digits, `_` and `-`; any other character has a backslash before it. */
const STEP = String.raw`(?:[\p{L}\p{M}\p{N}_-]|\\.)+`
/** Steps with dots between them. */
export const PATH = String.raw`${STEP}(?:\.${STEP})*`
const MEMBER = new RegExp(`^(${PATH})=(.*)$`, 'u')
const MUST_BE_ESCAPED = /[^\p{L}\p{M}\p{N}_-]/gu

/** A member of JSON that is named: its path, the steps of that, and the text of its value. */
export interface NamedMember {
  path: string
  steps: readonly string[]
  value: string
}

/** Reads `data.object.id=evt_1`, or `labels.app\.name=x`. Undefined for another form. */
export function readMember(text: string): NamedMember | undefined {
  const [, path, value] = MEMBER.exec(text) ?? []
  if (path === undefined || value === undefined) return undefined
  return { path, steps: stepsOf(path), value }
}

/** The path of these steps. */
export function pathOf(steps: readonly string[]): string {
  return steps.map((step) => step.replace(MUST_BE_ESCAPED, String.raw`\$&`)).join('.')
}

/** TypeScript does not know `JSON.rawJSON` yet: a value that is written as the given text. */
const EXACT = JSON as typeof JSON & {
  rawJSON: (text: string) => unknown
  isRawJSON: (value: unknown) => boolean
}

/** The value that a text holds, its numbers as `toNumber` makes them; undefined if it is not JSON. */
function parseNumbers(
  text: string,
  toNumber: (source: string, value: number) => unknown,
): unknown {
  try {
    return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) => {
      const source = context?.source
      return typeof value === 'number' && source !== undefined ? toNumber(source, value) : value
    })
  } catch {
    // SyntaxError, or RangeError for deep nesting.
    return undefined
  }
}

/** JSON whose numbers are written as they were read: `1.10` is not `1.1`, and integers have any size. */
export function parseExact(text: string): unknown {
  return parseNumbers(text, (source) => EXACT.rawJSON(source))
}

/** JSON whose integers of up to 19 digits are texts where a number can't hold them: ids of 64 bits. */
export function parseLongIds(text: string): unknown {
  return parseNumbers(text, (source, value) => {
    return !Number.isSafeInteger(value) && /^\d{1,19}$/.test(source) ? source : value
  })
}

/** Whether a value of `parseExact` is a number. */
export function isExactNumber(value: unknown): boolean {
  return EXACT.isRawJSON(value)
}

/** A string as it is, any other value of `parseExact` as JSON; undefined for undefined. */
export function exactText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
