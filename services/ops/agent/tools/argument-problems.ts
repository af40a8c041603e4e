import type { TObject, TSchema } from '../../../../kernel/schema.ts'
import { isList, isObject, type JsonObject } from '../../../../kernel/json.ts'
import { fits } from '../../../../kernel/validate.ts'
import { requiredOf } from './arguments.ts'

/** The parts of a property's schema that a model gets. */
interface Shown {
  type?: string
  enum?: readonly unknown[]
  description?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  pattern?: string
}

const MAX_SENT = 100
const MAX_PROBLEMS = 5

/** What is wrong with arguments that do not fit, a line each. */
export function argumentProblems(
  tool: string,
  schema: TObject,
  given: unknown,
): readonly string[] {
  const { properties } = schema
  const required = requiredOf(schema)
  if (!isObject(given)) {
    const example = JSON.stringify(exampleOf(schema))
    return [`the arguments must be one JSON object, such as ${example}; you sent ${sent(given)}`]
  }
  const missing = required.filter((name) => !Object.hasOwn(given, name))
  const problems = [
    ...missing.map(
      (name) => `${name} is missing: it must be ${expected(properties[name], undefined)}`,
    ),
    ...Object.entries(given).flatMap(([name, value]) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (property === undefined) return [`${name} is not known: ${takenBy(tool, properties)}`]
      if (fits(property, value)) return []
      return [`${name} must be ${expected(property, value)}; you sent ${sent(value)}`]
    }),
  ]
  return problems.slice(0, MAX_PROBLEMS)
}

function takenBy(tool: string, properties: Readonly<Record<string, TSchema>>): string {
  const names = Object.keys(properties)
  return names.length === 0 ? `${tool} takes no arguments` : `${tool} takes ${names.join(', ')}`
}

/** The arguments that a tool needs, or the first one, with places for their values. */
function exampleOf(schema: TObject): JsonObject {
  const required = requiredOf(schema)
  const names = required.length > 0 ? required : Object.keys(schema.properties).slice(0, 1)
  return Object.fromEntries(names.map((name) => [name, '…']))
}

function expected(schema: TSchema | undefined, value: unknown): string {
  const {
    type,
    enum: values,
    description,
    maxLength,
    maxItems,
    ...range
  } = (schema ?? {}) as Shown
  const about = description === undefined ? '' : ` (${description})`
  if (values !== undefined) return `one of ${values.map((one) => JSON.stringify(one)).join(', ')}`
  if (type === 'integer' || type === 'number') {
    const isFraction = type === 'integer' && typeof value === 'number' && value % 1 !== 0
    return `a ${rangeText(isFraction ? 'whole number' : 'number', range)}${about}`
  }
  if (type === 'boolean') return 'true or false'
  if (type === 'array') return `a list of at most ${maxItems} texts, such as ["df", "-h"]${about}`
  if (range.pattern !== undefined && typeof value === 'string' && description !== undefined) {
    return description.charAt(0).toLowerCase() + description.slice(1)
  }
  const { minLength = 0 } = range
  const most = maxLength === undefined ? 'or more' : `to ${maxLength}`
  return `a text of ${minLength} ${most} characters${about}`
}

function rangeText(what: string, { minimum, maximum }: Shown): string {
  if (minimum !== undefined && maximum !== undefined)
    return `${what} from ${minimum} to ${maximum}`
  return minimum === undefined ? what : `${what} from ${minimum} on`
}

/** What was sent, short enough to be quoted. */
function sent(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  if (text.length <= MAX_SENT) return text
  const size =
    typeof value === 'string' ? `${value.length} characters` : `${text.length} characters`
  return isList(value) ? `a list of ${value.length}` : size
}
