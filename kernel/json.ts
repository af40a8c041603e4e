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

/** The member at a path such as `event.type` or `items.0.id`, or at its steps; undefined if it is missing. */
export function memberAt(value: unknown, path: string | readonly string[]): unknown {
  const steps = typeof path === 'string' ? stepsOf(path) : path
  return steps.reduce((outer, step) => {
    if (isList(outer)) return /^\d{1,9}$/.test(step) ? outer[Number(step)] : undefined
    return isObject(outer) && Object.hasOwn(outer, step) ? outer[step] : undefined
  }, value)
}

/** What a table has under a name from outside, which may be that of a member of every object. */
export function entryOf<T>(table: Readonly<Record<string, T>>, name: unknown): T | undefined {
  return typeof name === 'string' && Object.hasOwn(table, name) ? table[name] : undefined
}

/** The steps of a path; `a\.b` is one, `a.b`. */
export function stepsOf(path: string): readonly string[] {
  if (!path.includes('\\')) return path.split('.')
  const steps = path.matchAll(/(?:[^.\\]|\\.)+/gsu)
  return Array.from(steps, ([step]) => step.replace(/\\(.)/gsu, '$1'))
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
