import { STATUS_CODES } from 'node:http'
import type { TObject, TSchema } from 'typebox'
import type { Route } from './http/router.ts'

interface Members {
  readonly [name: string]: Plain | undefined
}

/** Turns a schema into what the document shows of it. */
type Show = (schema: TSchema) => Members

/** An OpenAPI 3.1 document: an API as its operations describe it, nothing of it said twice. */
export function openApi(api: ApiDescription): Members {
  const { title, version, description, operations, refusals, schemas, tokens } = api
  const show = namedSchemas(schemas)
  const refused = new Set(operations.flatMap((operation) => refusalsOf(operation)))
  const needed = Object.entries(refusals).filter(([status]) => refused.has(Number(status)))
  return {
    openapi: '3.1.0',
    info: { title, version, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: api.servers.map(({ url, description: about }) => ({ url, description: about })),
    security: tokens === undefined ? [] : [{ bearer: [] }],
    tags: Object.entries(api.tags).map(([name, about]) => ({ name, description: about })),
    paths: pathsOf(operations, tokens !== undefined, show),
    components: {
      schemas: Object.fromEntries(
        Object.entries(schemas).map(([name, schema]) => [name, inside(plain(schema), show)]),
      ),
      responses: Object.fromEntries(
        needed.map(([status, reply]) => [refusalName(Number(status)), shownReply(reply, show)]),
      ),
      ...(tokens !== undefined && {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: tokens } },
      }),
    },
  }
}

function pathsOf(operations: readonly Operation[], hasTokens: boolean, show: Show): Members {
  const paths: Record<string, Record<string, Plain | undefined>> = {}
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, '{$1}')
    const methods = (paths[path] ??= {})
    methods[operation.method.toLowerCase()] = shownOperation(operation, hasTokens, show)
  }
  return paths
}

function shownOperation(operation: Operation, hasTokens: boolean, show: Show): Members {
  const { id, tag, summary, description, needsToken, body, replies } = operation
  const { bodyTypes = ['application/json'] } = operation
  const parameters = parametersOf(operation, show)
  const responses: Record<string, Plain> = {}
  for (const status of refusalsOf(operation)) {
    responses[status] = { $ref: `#/components/responses/${refusalName(status)}` }
  }
  for (const [status, reply] of Object.entries(replies)) {
    responses[status] = shownReply(reply, show)
  }
  return {
    operationId: id,
    summary,
    description,
    tags: [tag],
    ...(hasTokens && !needsToken && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && {
      requestBody: {
        required: true,
        content: Object.fromEntries(bodyTypes.map((type) => [type, { schema: show(body) }])),
      },
    }),
    // Numbers as names stand in their order.
    responses,
  }
}

/** Parameters of the path in their order, then those of the query and the headers. */
function parametersOf(
  { path, params = {}, query, headers }: Operation,
  show: Show,
): readonly Members[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) =>
    parameter(name, 'path', true, params[name], show),
  )
  return [
    ...inPath,
    ...parametersIn('query', query, show),
    ...parametersIn('header', headers, show),
  ]
}

function parametersIn(
  place: 'query' | 'header',
  schemas: TObject | undefined,
  show: Show,
): readonly Members[] {
  return Object.entries(schemas?.properties ?? {}).map(([name, schema]) =>
    parameter(name, place, schemas?.required?.includes(name) ?? false, schema, show),
  )
}

function parameter(
  name: string,
  place: 'path' | 'query' | 'header',
  required: boolean,
  schema: TSchema | undefined,
  show: Show,
): Members {
  const { description, ...rest } = schema === undefined ? { type: 'string' } : show(schema)
  return { name, in: place, required, description, schema: rest }
}

function shownReply({ description, schema, type, headers }: ReplyDescription, show: Show): Members {
  return {
    description,
    ...(headers !== undefined && { headers: shownHeaders(headers, show) }),
    ...(schema !== undefined && {
      content: { [type ?? 'application/json']: { schema: show(schema) } },
    }),
  }
}

function shownHeaders({ properties }: TObject, show: Show): Members {
  const headers = Object.entries(properties).map(([name, schema]) => {
    const { description, ...rest } = show(schema)
    return [name, { required: true, description, schema: rest }] as const
  })
  return Object.fromEntries(headers)
}

function refusalsOf({ refusals, replies }: Operation): readonly number[] {
  return [...new Set(refusals)].filter((status) => !(status in replies))
}

/** `BadRequest` for 400, and so on. */
function refusalName(status: number): string {
  return (STATUS_CODES[status] ?? `Status${status}`).replaceAll(/[^A-Za-z]/g, '')
}

/** Shows schemas for people, and those that equal a named one by its name. */
function namedSchemas(schemas: ApiDescription['schemas']): Show {
  const names = new Map<string, string>()
  for (const [name, schema] of Object.entries(schemas)) {
    const text = JSON.stringify(schema)
    const other = names.get(text)
    if (other !== undefined) throw new Error(`the schemas ${other} and ${name} are the same`)
    names.set(text, name)
  }
  const show = (schema: Members): Members => {
    const name = names.get(JSON.stringify(schema))
    return name === undefined ? inside(schema, show) : { $ref: `#/components/schemas/${name}` }
  }
  return (schema) => show(plain(schema))
}

/** A schema without what only the program reads of it. */
function plain(schema: TSchema): Members {
  return JSON.parse(JSON.stringify(schema)) as Members
}

/** A schema whose parts are shown, in the shortest form that means the same. */
function inside(schema: Members, show: (schema: Members) => Members): Members {
  const shown: Record<string, Plain | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'properties') {
      const members = Object.entries(value as Members)
      shown[keyword] = Object.fromEntries(
        members.map(([name, part]) => [name, show(part as Members)]),
      )
    } else if (keyword === 'items') shown[keyword] = show(value as Members)
    else if (keyword === 'anyOf' || keyword === 'allOf') {
      shown[keyword] = (value as readonly Members[]).map(show)
    } else shown[keyword] = value
  }
  return shorter(shown)
}

/** `anyOf` of constants as `enum`, and "this or null" as a list of types. */
function shorter({ anyOf, ...rest }: Members): Members {
  if (!Array.isArray(anyOf)) {
    const { enum: values } = rest
    const texts = Array.isArray(values) && values.every((value) => typeof value === 'string')
    return texts ? { type: 'string', ...rest } : { ...rest }
  }
  const parts = anyOf as readonly Members[]
  if (parts.every(({ type, const: value }) => type === 'string' && typeof value === 'string')) {
    return { ...rest, type: 'string', enum: parts.map(({ const: value }) => value ?? null) }
  }
  const [first = {}, second = {}] = parts
  if (parts.length === 2 && second['type'] === 'null' && typeof first['type'] === 'string') {
    if (!('enum' in first)) return { ...rest, ...first, type: [first['type'], 'null'] }
  }
  return { ...rest, anyOf }
}

/** What JSON can say; members that are undefined are left out. */
export type Plain =
  | string
  | number
  | boolean
  | null
  | readonly Plain[]
  | { readonly [name: string]: Plain | undefined }

/**
 * A value as YAML 1.2 in block style, for people to read. Text that could be taken for anything
 * else is in double quotes, where YAML reads what JSON writes.
 */
export function toYaml(value: Plain): string {
  return `${node(value, 0, '').trimStart()}\n`
}

/** A node at a depth; `lead` stands before what fits on the line of its key or dash. */
function node(value: Plain, depth: number, lead: string): string {
  if (typeof value === 'string') return lead + scalar(value)
  if (typeof value !== 'object' || value === null) return lead + JSON.stringify(value)
  const indent = `\n${'  '.repeat(depth)}`
  if (isList(value)) {
    if (value.length === 0) return `${lead}[]`
    // An item's first line stands beside its dash.
    return value.map((item) => `${indent}- ${node(item, depth + 1, '').trimStart()}`).join('')
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  if (members.length === 0) return `${lead}{}`
  return members
    .map(([name, member]) => `${indent}${scalar(name)}:${node(member ?? null, depth + 1, ' ')}`)
    .join('')
}

/**
 * Begins with a letter, a slash or `$`, holds nothing that YAML gives a meaning, and is no other
 * type's name.
 */
const PLAIN = /^[A-Za-z/$][\w ./{}()$'"@,;=<>!?*-]*$/
const OTHER_TYPE = /^(true|false|null|yes|no|on|off|y|n)$/i

function scalar(text: string): string {
  if (PLAIN.test(text) && !text.endsWith(' ') && !OTHER_TYPE.test(text)) return text
  // JSON leaves these as they are, YAML counts them as line ends or as unprintable.
  return JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function isList(value: object): value is readonly Plain[] {
  return Array.isArray(value)
}

/** A reply as the documentation of an API shows it; without a schema it has no body. */
export interface ReplyDescription {
  readonly description: string
  readonly schema?: TSchema
  /** Media type of the body; `application/json` when absent. */
  readonly type?: string
  /** Headers that the reply has beside the usual ones. */
  readonly headers?: TObject
}

/**
 * A route of an API with its description, which becomes OpenAPI. Its schemas don't check requests
 * by themselves: the handler reads them, with refusals in the words of its contract.
 */
export interface Operation extends Route {
  /** `operationId`: unique in its API, such as `createLink`. */
  readonly id: string
  readonly summary: string
  /** What the summary leaves out. */
  readonly description?: string
  /** The group that documentation shows it in. */
  readonly tag: string
  /** False for what anybody may call. */
  readonly needsToken: boolean
  /** Headers that the handler reads. */
  readonly headers?: TObject
  /** Media types of the body; `application/json` when absent. */
  readonly bodyTypes?: readonly string[]
  /** Success replies by status. */
  readonly replies: Readonly<Record<number, ReplyDescription>>
  /** Statuses of the refusals that it may answer; one that `replies` describes is not repeated. */
  readonly refusals: readonly number[]
}

/** What the document of an API says beside its operations. */
export interface ApiDescription {
  readonly title: string
  readonly version: string
  readonly description: string
  /** Addresses of the service; the first is the public one. */
  readonly servers: readonly { readonly url: string; readonly description: string }[]
  /** Every group with what it is about, in the order of the document. */
  readonly tags: Readonly<Record<string, string>>
  readonly operations: readonly Operation[]
  /** Schemas with a name: wherever an equal one stands, the document refers to it. */
  readonly schemas: Readonly<Record<string, TSchema>>
  /** The body of each refusal, by its status. */
  readonly refusals: Readonly<Record<number, ReplyDescription>>
  /** Where a caller gets the bearer token that operations need; absent when none does. */
  readonly tokens?: string
}
