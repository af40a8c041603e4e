// Members of an answer as its JSON text has them: `1.10` is not `1.1`, and integers have any size.

import { memberAt } from '../../../../kernel/json.ts'

/** TypeScript does not know `JSON.rawJSON` yet: a value that is written as the given text. */
const EXACT = JSON as typeof JSON & { rawJSON: (text: string) => unknown }

/** Steps between dots; a dot within a step has a backslash before it. */
const MEMBER = /^((?:[\w-]|\\\.)+(?:\.(?:[\w-]|\\\.)+)*)=(.*)$/

/** The value that a text holds, with its numbers as they are written; undefined if it is not JSON. */
export function parseExact(text: string): unknown {
  try {
    return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) => {
      const source = context?.source
      return typeof value === 'number' && source !== undefined ? EXACT.rawJSON(source) : value
    })
  } catch {
    // SyntaxError, or RangeError for deep nesting.
    return undefined
  }
}

/** The steps of `pools.0.free=3` and the text of its value, or `labels.app\.name=x`. Undefined for another form. */
export function readExpectation(text: string) {
  const [, path, expected] = MEMBER.exec(text) ?? []
  if (path === undefined || expected === undefined) return undefined
  const steps = path.split(/(?<!\\)\./).map((step) => step.replaceAll('\\.', '.'))
  return { path, steps, expected }
}

/** The text of a member; undefined if it is missing. */
export function memberText(value: unknown, steps: readonly string[]): string | undefined {
  const found = memberAt(value, steps)
  return typeof found === 'string' ? found : JSON.stringify(found)
}
