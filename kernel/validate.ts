import * as Type from './schema.ts'
import type { Static, TObject, TSchema, TSchemaOptions } from './schema.ts'
import type { TLocalizedValidationError } from 'typebox/error'
// Not `typebox/compile` and `typebox/value`, which load all that changes values, 3 MiB.
import { Compile, Pointer, type Validator } from 'typebox/schema'
import { badRequest, Fault } from './fault.ts'

/** Validators by schema, compiled at first use: all together they would slow down each start. */
const validators = new WeakMap<TSchema, Validator>()

function validatorOf(schema: TSchema) {
  return validators.getOrInsertComputed(schema, () => Compile(schema))
}

/** Whether a value fits a schema. It does not apply the rules of fields. */
export function fits<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  return validatorOf(schema).Check(value)
}

/**
 * The first place where a value does not fit, such as `/services/0/name`, and what is expected
 * there.
 */
export function mismatchOf(schema: TSchema, value: unknown) {
  const error = firstError(schema, value)
  return {
    path: error?.instancePath ?? '',
    message: error === undefined ? '' : expected(schema, error),
  }
}

function firstError(schema: TSchema, value: unknown) {
  const [, [error]] = validatorOf(schema).Errors(value)
  return error
}

function expected(schema: TSchema, error: TLocalizedValidationError): string {
  if (error.keyword === 'enum') return `must be one of ${error.params.allowedValues.join(', ')}`
  // A property that the schema does not have.
  if (error.keyword === 'boolean') return 'is not known'
  const { description } = Pointer.Get(schema, error.schemaPath.slice(1)) as TSchemaOptions
  const isSaid = error.keyword === 'pattern' && description !== undefined
  return isSaid ? `must be ${description}` : error.message
}

/** The same in a line, such as `services.0.name must be string`. */
export function firstMismatch(schema: TSchema, value: unknown, whole = 'the value') {
  const { path, message } = mismatchOf(schema, value)
  return `${path.slice(1).replaceAll('/', '.') || whole} ${message}`
}

/** What is said of a wrong value, after its field's name; the code is `BAD_REQUEST` by default. */
export type Message = string | { code: string; text: string }

/**
 * The messages of a field: one for every failure, or one for each keyword of JSON Schema that may
 * fail (`maxLength`). `missing` is for an absent value, `wrong` for anything else.
 */
export type Messages = Message | Readonly<{ wrong: Message; [keyword: string]: Message }>

/** A rule that JSON Schema can't express, and the message for a value that breaks it. */
type Rule<Value> = readonly [holds: (value: Value) => boolean, message: Message]

interface Checks {
  messages: Messages
  rules: readonly Rule<never>[]
  read?: (given: unknown) => unknown
}

/**
 * The key of a field's checks: a symbol, so that they stay out of JSON and of the API's document.
 */
const CHECKS = Symbol('checks')

type CheckedSchema = TSchema & { [CHECKS]?: Checks }

/** A field with its messages. The rules are checked in their order once the schema fits. */
export function field<T extends TSchema>(
  schema: T,
  messages: Messages,
  ...rules: readonly Rule<Static<T>>[]
): T {
  return Type.copyWith(schema, { [CHECKS]: { value: { messages, rules } } })
}

/**
 * A field that a function reads. `read` gives undefined for a value that is wrong; it may throw a
 * Fault that says more. The schema is what the API's document shows.
 */
export function parsed<T extends TSchema>(
  schema: T,
  messages: Messages,
  read: (given: unknown) => Static<T> | undefined,
): T {
  return Type.copyWith(schema, { [CHECKS]: { value: { messages, rules: [], read } } })
}

/**
 * A field that may be left out, and has this value then: after validation it is always there. Goes
 * inside of `field` and `parsed`. A default of null is not shown in the API's document.
 */
export function withDefault<T extends TSchema>(schema: T, value: Static<T>): T {
  const shown = Type.copyWith(schema, { default: { value, enumerable: value !== null } })
  return Type.Optional(shown) as unknown as T
}

/**
 * The fields that a schema names, in its order, of a JSON object; others are dropped
 * (`refuseUnknown` refuses them). Throws the Fault of the first field that is wrong; its `fields`
 * has the messages of all.
 */
export function validate<S extends TObject>(
  schema: S,
  given: Readonly<Record<string, unknown>>,
): Static<S> {
  return validFields(schema, given, (name, property, value) => {
    const { read } = checksOf(property)
    // What is read must be of the type that the API's document shows.
    const type = read && typeOf(property)
    if (type !== undefined && !hasType(value, type)) throw wrongType(name, property, type)
    return validField(name, property, value)
  })
}

/** Whether a schema takes only the members that it names. */
export function isStrict(schema: TSchema & { additionalProperties?: unknown }): boolean {
  return schema.additionalProperties === false
}

const MAX_SHOWN_NAME = 100

/**
 * Refuses a member that a strict schema does not name, and that is not among further known ones:
 * most likely a typing error.
 */
export function refuseUnknown(
  schema: TObject,
  given: Readonly<Record<string, unknown>>,
  status: number,
  further: Readonly<Record<string, TSchema>> = {},
): void {
  const all = { ...further, ...schema.properties }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(all, name))
  if (!isStrict(schema) || unknown === undefined) return
  const name = unknown.slice(0, MAX_SHOWN_NAME).toWellFormed()
  const known = Object.keys(schema.properties).join(', ')
  const message = `${name} is not known; the body takes ${known}.`
  throw new Fault(status, 'UNKNOWN_MEMBER', message, { field: name })
}

type ValidField = (name: string, property: TSchema, value: unknown) => unknown

function validFields<S extends TObject>(
  schema: S,
  given: Readonly<Record<string, unknown>>,
  validValue: ValidField,
): Static<S> {
  const required = new Set(schema.required)
  const valid: Record<string, unknown> = {}
  const faults: Fault[] = []
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    try {
      if (value !== undefined) valid[name] = validValue(name, property, value)
      else if ('default' in property) valid[name] = property['default']
      else if (required.has(name)) throw wrongField(name, property, 'missing')
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      faults.push(error)
    }
  }
  if (faults.length > 0) throw joinFaults(faults)
  return valid as Static<S>
}

/** The first of several faults, with the messages of all by their fields. */
export function joinFaults(faults: readonly Fault[]): Fault {
  const [first = badRequest('the input is not valid')] = faults
  const fields: Readonly<Record<string, string>> = Object.assign(
    {},
    ...faults.map(({ field, fields, message }) =>
      field === undefined ? { '': message } : fields,
    ),
  )
  const { status, code, message, field: name, headers } = first
  return new Fault(status, code, message, { headers, fields, ...(name && { field: name }) })
}

/**
 * Validates fields that come as texts: of a form, a query, or a path. A text that is not of its
 * field's type, such as `x` for a number, stays a text and is refused by the schema.
 */
export function validateTexts<S extends TObject>(
  schema: S,
  textOf: (name: string) => string | null | undefined,
): Static<S> {
  const required = new Set(schema.required)
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const text = textOf(name)
    const booleans = required.has(name) ? SWITCH : BOX
    if (text !== null && text !== undefined) values[name] = valueOf(property, text, booleans)
  }
  return validFields(schema, values, validField)
}

/** The same for the parameters of a query. */
export function validateQuery<S extends TObject>(schema: S, query: URLSearchParams): Static<S> {
  refuseRepeated(schema, query)
  return validateTexts(schema, (name) => query.get(name))
}

/** Refuses a parameter that takes one value and is given twice: of two, one would be ignored. */
function refuseRepeated(schema: TObject, query: URLSearchParams): void {
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    if (typeOf(property) === 'array' || query.getAll(name).length < 2) continue
    const { status, code } = wrongField(name, property, 'wrong')
    throw new Fault(status, code, `${name} may be given once.`, { field: name })
  }
}

function valueOf(schema: TSchema, text: string, booleans: Booleans) {
  const { type } = schema as { type?: unknown }
  if (type === 'integer' && /^-?\d+$/.test(text)) {
    // Larger numbers would lose digits: nothing has an id or a count beyond these.
    return Math.max(Math.min(Number(text), Number.MAX_SAFE_INTEGER), Number.MIN_SAFE_INTEGER)
  }
  if (type === 'number' && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  if (type === 'boolean') return booleans[text] ?? text
  if (type === 'array') return text === '' ? [] : text.split('\n')
  return text
}

type Booleans = Readonly<Record<string, boolean>>

/** A field that must be there says which of both it means. */
const SWITCH: Booleans = { true: true, false: false }

/** Browsers send `on` for a ticked box that has no value. */
const BOX: Booleans = { ...SWITCH, on: true, 1: true, '': false }

function validField(name: string, schema: TSchema, value: unknown) {
  const { rules, read } = checksOf(schema)
  if (read !== undefined) {
    const result = read(value)
    if (result === undefined) throw wrongField(name, schema, 'wrong')
    return result
  }
  if (!fits(schema, value)) {
    throw wrongField(name, schema, firstError(schema, value)?.keyword ?? 'wrong')
  }
  const broken = rules.find(([holds]) => !holds(value as never))
  if (broken !== undefined) throw faultOf(name, broken[1])
  return value
}

/** The type of a schema, such as `string`; undefined unless it has exactly one. */
export function typeOf(schema: TSchema) {
  const { type } = schema as { type?: unknown }
  return typeof type === 'string' ? type : undefined
}

function hasType(value: unknown, type: string) {
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  return typeof value === type
}

function wrongType(name: string, schema: TSchema, type: string) {
  const { messages } = checksOf(schema)
  if (typeof messages !== 'string') return wrongField(name, schema, 'type')
  return badRequest(`${name} must be a JSON ${type}; it ${messages}`, name)
}

function wrongField(name: string, schema: TSchema, keyword: string) {
  const { messages } = checksOf(schema)
  if (typeof messages === 'string' || 'text' in messages) return faultOf(name, messages as Message)
  return faultOf(name, messages[keyword] ?? messages.wrong)
}

function faultOf(name: string, message: Message) {
  if (typeof message === 'string') return badRequest(`${name} ${message}`, name)
  return new Fault(400, message.code, `${name} ${message.text}`, { field: name })
}

function checksOf(schema: TSchema) {
  return (schema as CheckedSchema)[CHECKS] ?? { messages: 'is not valid', rules: [] }
}
