import type Type from 'typebox'
import type {
  Static,
  TEnum,
  TEnumValue,
  TKeysToIndexer,
  TLiteral,
  TNull,
  TObject,
  TObjectOptions,
  TOmit,
  TPartial,
  TPick,
  TProperties,
  TRecord,
  TSchema,
  TSchemaOptions,
  TString,
  TStringOptions,
  TUnion,
  TUnsafe,
} from 'typebox'

// The builders of typebox that are used here, with its types. The library's own make the same JSON
// Schema, and take 10 MiB of each process. Imported as `Type`.

/** Whoever imports the builders as `Type` writes `Type.Static` for the library's type. */
export type { Static, TObject, TProperties, TSchema, TSchemaOptions }
export type { TLiteral, TNull, TString, TStringOptions, TUnion }

export const Unknown: typeof Type.Unknown = (options) => built({}, options)
export const Null: typeof Type.Null = (options) => built({ type: 'null' }, options)
export const Boolean: typeof Type.Boolean = (options) => built({ type: 'boolean' }, options)
export const Integer: typeof Type.Integer = (options) => built({ type: 'integer' }, options)
export const Number: typeof Type.Number = (options) => built({ type: 'number' }, options)
export const String: typeof Type.String = (options) => built({ type: 'string' }, options)

export const Literal: typeof Type.Literal = (value, options) =>
  built({ type: typeof value, const: value }, options)

export function Enum<Values extends TEnumValue[]>(
  values: readonly [...Values],
  options?: TSchemaOptions,
): TEnum<Values> {
  return built({ enum: values }, options)
}

export const Union: typeof Type.Union = (anyOf, options) => built({ anyOf }, options)
export const Intersect: typeof Type.Intersect = (allOf, options) => built({ allOf }, options)
export const Array: typeof Type.Array = (items, options) =>
  built({ type: 'array', items }, options)

/** An object whose members may have any name. */
export function Record<Value extends TSchema>(
  value: Value,
  options?: TObjectOptions,
): TRecord<'^.*$', Value> {
  return built({ type: 'object', patternProperties: { '^.*$': value } }, options)
}

/** Any JSON Schema, with the type of the values that it describes. */
export function Unsafe<Value>(schema: TSchema): TUnsafe<Value> {
  return schema as TUnsafe<Value>
}

/** Marks a member that an object need not have; JSON does not show it. */
const OPTIONAL = '~optional'

export const Optional: typeof Type.Optional = (schema) =>
  copyWith(schema, { [OPTIONAL]: { value: true } }) as never

function objectOf<S>(properties: TProperties, options?: TObjectOptions): S {
  const members = Object.entries(properties)
  const required = members.filter(([, schema]) => !(OPTIONAL in schema)).map(([name]) => name)
  return built({ type: 'object', ...(required.length > 0 && { required }), properties }, options)
}

const typedObject: typeof Type.Object = objectOf
export { typedObject as Object }

export function Partial<P extends TProperties>({ properties }: TObject<P>): TPartial<TObject<P>> {
  const members = Object.entries<TSchema>(properties)
  return objectOf(Object.fromEntries(members.map(([name, schema]) => [name, Optional(schema)])))
}

export function Pick<P extends TProperties, Names extends PropertyKey[]>(
  { properties }: TObject<P>,
  names: readonly [...Names],
): TPick<TObject<P>, TKeysToIndexer<Names>> {
  return objectOf(filtered(properties, (name) => names.includes(name)))
}

export function Omit<P extends TProperties, Names extends PropertyKey[]>(
  { properties }: TObject<P>,
  names: readonly [...Names],
): TOmit<TObject<P>, TKeysToIndexer<Names>> {
  return objectOf(filtered(properties, (name) => !names.includes(name)))
}

function filtered(properties: TProperties, keeps: (name: string) => boolean): TProperties {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => keeps(name)))
}

/** Whether a schema is of an object with named members. */
export function IsObject(schema: TSchema): schema is TObject {
  return 'properties' in schema
}

/** A copy with further properties: others may use the schema without them. */
export function copyWith<S extends TSchema>(schema: S, more: PropertyDescriptorMap): S {
  return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(schema), ...more }) as S
}

/** The library's types have a `~kind`, too, which nothing here reads. */
function built<S>(members: object, options: TSchemaOptions = {}): S {
  return Object.assign({}, members, options) as S
}
