/** A JSON object of any shape. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Whether a JSON value is an object, not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `Array.isArray`, for lists that may be read-only. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value)
}

/** The value that a text holds; undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // SyntaxError, or RangeError for deep nesting.
    return undefined
  }
}

/** The object that a text holds; undefined if the text is not JSON, or holds no object. */
export function parseObject(text: string): JsonObject | undefined {
  const value = parseJson(text)
  return isObject(value) ? value : undefined
}

/** The value if it is an object, otherwise an empty one. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** What TypeScript does not know of it yet: JSON text as it stands, within a value. */
const EXACT = JSON as typeof JSON & {
  rawJSON: (text: string) => unknown
  isRawJSON: (value: unknown) => boolean
}

/**
 * The same with numbers as the text has them: `JSON.stringify` gives `1.10` again, and integers of any size. Undefined
 * if the text is not JSON.
 */
export function parseExact(text: string): unknown {
  try {
    return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) => {
      const source = context?.source
      return typeof value === 'number' && source !== undefined ? EXACT.rawJSON(source) : value
    })
  } catch {
    return undefined
  }
}

/**
 * The member at a path such as `event.type` or `items.0.id`; undefined if it is missing. A dot within a name has a
 * backslash before it: `labels.app\.kubernetes\.io`.
 */
export function memberAt(value: unknown, path: string): unknown {
  return stepsOf(path).reduce((outer, step) => {
    if (isList(outer)) return /^\d{1,9}$/.test(step) ? outer[Number(step)] : undefined
    return isObject(outer) && !EXACT.isRawJSON(outer) && Object.hasOwn(outer, step)
      ? outer[step]
      : undefined
  }, value)
}

function stepsOf(path: string): readonly string[] {
  if (!path.includes('\\')) return path.split('.')
  return path.split(/(?<!\\)\./).map((step) => step.replaceAll('\\.', '.'))
}

/**
 * Reads `data.object.id=evt_1`: steps of letters, digits, `_` and `-` between dots, then the
 * value's text. A dot within a step has a backslash before it. Undefined for another form.
 */
export function readMember(text: string): readonly [path: string, value: string] | undefined {
  const [, path, value] = /^((?:[\w-]|\\\.)+(?:\.(?:[\w-]|\\\.)+)*)=(.*)$/.exec(text) ?? []
  return path === undefined || value === undefined ? undefined : [path, value]
}

/** The items of a list, each as an object; none if the value is no list. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}

/** The value if it is a string. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The value if it is a finite number. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
