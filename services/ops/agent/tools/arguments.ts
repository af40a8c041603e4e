import { isObject, parseJson } from '../../../../kernel/json.ts'
import type { TObject, TSchema } from '../../../../kernel/schema.ts'
import { fits } from '../../../../kernel/validate.ts'

/**
 * The arguments of a call as a model means them: `null` is no value, `"20"` is a number where one
 * is expected, and so on. What still does not fit is refused.
 */
export function meantArguments(schema: TObject, given: unknown): unknown {
  const { properties } = schema
  const required = requiredOf(schema)
  const value = typeof given === 'string' ? parseJson(given) : given
  if (!isObject(value)) return given
  const members = Object.entries(value).flatMap(([name, member]) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (property === undefined) return [[name, member] as const]
    const isAbsent = member === null && !required.includes(name)
    return isAbsent ? [] : [[name, meant(property, member)] as const]
  })
  return Object.fromEntries(members)
}

function meant(schema: TSchema, value: unknown): unknown {
  const { type } = schema as { type?: string }
  if (typeof value === 'string' && type !== 'string') {
    const read = parseJson(type === 'boolean' ? value.toLowerCase() : value)
    return fits(schema, read) ? read : value
  }
  const isScalar = typeof value === 'number' || typeof value === 'boolean'
  return type === 'string' && isScalar ? String(value) : value
}

export function requiredOf({ required }: TObject): readonly string[] {
  return required ?? []
}
