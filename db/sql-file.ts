import * as Type from '../kernel/schema.ts'
import type { Static, TSchema } from '../kernel/schema.ts'
import { assetNames, assetText } from '../kernel/assets.ts'
import type { Executor, Query } from './client.ts'

/** A timestamp: a Date in the program, RFC 3339 in UTC with milliseconds as JSON. */
export const Timestamp = Type.Unsafe<Date>({ type: 'string', format: 'date-time' })

/** Raw bytes of a `bytea` column; never sent as JSON. */
export const Bytes = Type.Unsafe<Buffer>({ type: 'string', format: 'bytes' })

export const Uuid = Type.String({ format: 'uuid' })

/** A value or null. */
export function nullable<T extends TSchema>(schema: T): Type.TUnion<[T, Type.TNull]> {
  return Type.Union([schema, Type.Null()])
}

/** What an argument of a PostgreSQL type is in the program. */
interface ArgumentTypes {
  bool: boolean
  bytea: Buffer
  float8: number
  int2: number
  int4: number
  int8: number
  jsonb: unknown
  text: string
  timestamptz: Date
  uuid: string
  'uuid[]': readonly string[]
}
type TypeName = keyof ArgumentTypes

/** Arguments by name; `user` is `:user` in the SQL. A type that ends with `?` takes null, too. */
type Arguments = Readonly<Record<string, TypeName | `${TypeName}?`>>

type Given<A extends Arguments> = {
  [Name in keyof A]: A[Name] extends TypeName
    ? ArgumentTypes[A[Name]]
    : A[Name] extends `${infer Type extends TypeName}?`
      ? ArgumentTypes[Type] | null
      : never
}

/** A colon after a colon is a cast, and one after a letter or digit is part of a text. */
const ARGUMENT = /(?<![:\w]):([a-z]\w*)/g

/** The declaration of a query: its arguments, its rows, and how many rows it gives. */
interface Declaration<A extends Arguments, Result> {
  args: A
  row: TSchema | undefined
  result: 'one' | 'optional' | 'many' | 'exec'
  plan?: Query['plan']
  /** Only a type: what the query gives. */
  gives?: Result
}

type AnyDeclaration = Declaration<Arguments, unknown>

/** A query with its declaration; `args` are PostgreSQL type names. */
export interface DeclaredQuery extends Query, Pick<AnyDeclaration, 'row' | 'result'> {
  args: readonly string[]
}

/** A query, called like a function: `await listTokens(db, { user })`. */
type SqlFunction<A extends Arguments, Result> = DeclaredQuery &
  ((db: Executor, given: Given<A>) => Promise<Result>)

/** A query that gives exactly one row. */
export function one<const A extends Arguments, R extends TSchema>(
  row: R,
  args: A,
): Declaration<A, Static<R>> {
  return { args, row, result: 'one' }
}

/** A query that gives a row or none. */
export function optional<const A extends Arguments, R extends TSchema>(
  row: R,
  args: A,
): Declaration<A, Static<R> | undefined> {
  return { args, row, result: 'optional' }
}

/** A query that gives any number of rows. */
export function many<const A extends Arguments, R extends TSchema>(
  row: R,
  args: A,
): Declaration<A, readonly Static<R>[]> {
  return { args, row, result: 'many' }
}

/** A query that gives no rows. */
export function exec<const A extends Arguments>(args: A): Declaration<A, void> {
  return { args, row: undefined, result: 'exec' }
}

/** A query with filters that may be null: one plan for all values uses no index of a filter. */
export function filtered<A extends Arguments, R>(query: Declaration<A, R>): Declaration<A, R> {
  return { ...query, plan: 'each' }
}

/**
 * The queries of a SQL file as functions. Each begins with a line `-- name: listTokens`. Throws a
 * SyntaxError where the file and its declarations have different queries or arguments.
 */
export function sqlFile<Q extends Readonly<Record<string, AnyDeclaration>>>(
  file: string,
  declarations: Q,
): {
  [Name in keyof Q]: Q[Name] extends Declaration<infer A, infer R> ? SqlFunction<A, R> : never
} {
  const texts = queryTexts(file)
  const names = new Set([...texts.keys(), ...Object.keys(declarations)])
  const functions = [...names].map((name) => {
    const text = texts.get(name)
    const declaration = declarations[name]
    if (text === undefined || declaration === undefined) {
      throw new SyntaxError(`"${file}" and its declarations differ in the query "${name}"`)
    }
    return [name, sqlFunction(`${file}: ${name}`, name, text, declaration)] as const
  })
  return Object.fromEntries(functions) as unknown as ReturnType<typeof sqlFile<Q>>
}

/**
 * All queries of the program, with arguments numbered in the order of their use: to be described.
 */
export function allQueries(): readonly Query[] {
  return assetNames('sql')
    .filter((file) => !file.startsWith('migrations/'))
    .flatMap((file) => [...queryTexts(`sql/${file}`)])
    .map(([name, text]) => {
      const order: string[] = []
      const numbered = text.replace(ARGUMENT, (_, argument: string) => {
        if (!order.includes(argument)) order.push(argument)
        return `$${order.indexOf(argument) + 1}`
      })
      return { name, text: numbered }
    })
}

function queryTexts(file: string): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  const [, ...parts] = assetText(file).split(/^-- name: /m)
  for (const part of parts) {
    const end = part.indexOf('\n')
    const name = part.slice(0, end)
    if (texts.has(name)) throw new SyntaxError(`"${file}" has the query "${name}" twice`)
    texts.set(name, part.slice(end + 1).replace(/;\s*$/, ''))
  }
  return texts
}

function sqlFunction(
  place: string,
  name: string,
  text: string,
  { args, row, result, plan }: AnyDeclaration,
): DeclaredQuery {
  const order = Object.keys(args)
  const unused = new Set(order)
  const sql = text.replace(ARGUMENT, (_, argument: string) => {
    unused.delete(argument)
    const at = order.indexOf(argument)
    if (at < 0) throw new SyntaxError(`${place}: argument ":${argument}" is not declared`)
    return `$${at + 1}`
  })
  if (unused.size > 0) {
    throw new SyntaxError(`${place}: argument "${[...unused].join(', ')}" is not used`)
  }
  const types = Object.values(args).map((type) => type.replace('?', ''))
  async function run(db: Executor, given: Readonly<Record<string, unknown>>) {
    const values = order.map((argument, at) => {
      const value = given[argument]
      // The client sends an array as the JSON that most arguments with many values are.
      return types[at] === 'uuid[]' && Array.isArray(value) ? `{${value.join(',')}}` : value
    })
    const rows = await db.run(query, values)
    if (result === 'many') return rows
    if (result === 'exec') return undefined
    const least = result === 'one' ? 1 : 0
    // Anything else is a bug in the query.
    if (rows.length >= least && rows.length <= 1) return rows[0]
    throw new Error(`${name}: expected ${least} to 1 rows, got ${rows.length}`)
  }
  const query: DeclaredQuery = Object.assign(run, { text: sql, plan, result, args: types, row })
  return Object.defineProperty(query, 'name', { value: name })
}
