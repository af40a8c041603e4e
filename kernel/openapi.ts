import type { TObject, TSchema } from './schema.ts'
import type { Route } from './http/router.ts'
import { http } from './http/node-http.ts'
import { isList } from './json.ts'

interface Members {
  [name: string]: Plain | undefined
}

/** Turns a schema into what the document shows of it. */
type Show = (schema: TSchema) => Members

/** An OpenAPI 3.1 document: an API as its operations describe it, nothing of it said twice. */
export function openApi(api: ApiDescription): Members {
  const { title, version, description, operations, refusals, schemas, tokens } = api
  const show = namedSchemas(schemas)
  const refused = new Set(operations.flatMap(refusalsOf))
  const needed = Object.entries(refusals).filter(([status]) => refused.has(Number(status)))
  return {
    openapi: '3.1.0',
    info: { title, version, description, license: { name: 'MIT', identifier: 'MIT' } },
    servers: api.servers,
    security: tokens === undefined ? [] : [{ bearer: [] }],
    tags: Object.entries(api.tags).map(([name, about]) => ({ name, description: about })),
    paths: pathsOf(operations, tokens !== undefined, show),
    components: {
      schemas: mapped(schemas, (schema) => inside(plain(schema), show)),
      responses: Object.fromEntries(
        needed.map(([status, reply]) => [refusalName(Number(status)), shownReply(reply, show)]),
      ),
      ...(tokens !== undefined && {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: tokens } },
      }),
    },
  }
}

function pathsOf(operations: readonly Operation[], hasTokens: boolean, show: Show) {
  const paths: Record<string, Record<string, Plain | undefined>> = {}
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, '{$1}')
    const methods = (paths[path] ??= {})
    methods[operation.method.toLowerCase()] = shownOperation(operation, hasTokens, show)
  }
  return paths
}

function shownOperation(operation: Operation, hasTokens: boolean, show: Show) {
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
    ...(hasTokens && securityOf(needsToken)),
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

/** What an operation says of tokens beside the whole document, which needs one. */
function securityOf(needsToken: Operation['needsToken']) {
  if (needsToken === true) return {}
  return { security: needsToken === 'optional' ? [{}, { bearer: [] }] : [] }
}

/** Parameters of the path in their order, then those of the query and the headers. */
function parametersOf(
  { path, params = {}, query, headers }: Operation,
  show: Show,
): readonly Members[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => {
    return { name, in: 'path', ...shownValue(params[name] ?? { type: 'string' }, true, show) }
  })
  function others(place: 'query' | 'header', schema: TObject | undefined) {
    return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
      const required = schema?.required?.includes(name) ?? false
      return { name, in: place, ...shownValue(property, required, show) }
    })
  }
  return [...inPath, ...others('query', query), ...others('header', headers)]
}

/** What the document says of a parameter or a header beside its name. */
function shownValue(value: TSchema, required: boolean, show: Show) {
  const { description, ...schema } = show(value)
  return { required, description, schema }
}

function shownReply({ description, schema, type, headers }: ReplyDescription, show: Show) {
  return {
    description,
    ...(headers !== undefined && { headers: shownHeaders(headers, show) }),
    ...(schema !== undefined && {
      content: { [type ?? 'application/json']: { schema: show(schema) } },
    }),
  }
}

function shownHeaders({ properties }: TObject, show: Show) {
  return mapped(properties, (schema) => shownValue(schema, true, show))
}

/** The same names with other values. */
function mapped<From, To>(members: Readonly<Record<string, From>>, to: (value: From) => To) {
  const entries = Object.entries(members)
  return Object.fromEntries(entries.map(([name, value]) => [name, to(value)]))
}

function refusalsOf({ refusals, replies }: Operation) {
  return [...new Set(refusals)].filter((status) => !(status in replies))
}

/** `BadRequest` for 400, and so on. */
function refusalName(status: number) {
  return (http.STATUS_CODES[status] ?? `Status${status}`).replaceAll(/[^A-Za-z]/g, '')
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
function plain(schema: TSchema) {
  return JSON.parse(JSON.stringify(schema)) as Members
}

/** A schema whose parts are shown, in the shortest form that means the same. */
function inside(schema: Members, show: (schema: Members) => Members) {
  const shown: Record<string, Plain | undefined> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === 'properties') {
      shown[keyword] = mapped(value as Readonly<Record<string, Members>>, show)
    } else if (keyword === 'items') shown[keyword] = show(value as Members)
    else if (keyword === 'anyOf' || keyword === 'allOf') {
      shown[keyword] = (value as readonly Members[]).map(show)
    } else shown[keyword] = value
  }
  return shorter(shown)
}

/** The type of an `enum` of texts, and "this or null" as a list of types. */
function shorter({ anyOf, ...rest }: Members) {
  if (!Array.isArray(anyOf)) {
    const { enum: values } = rest
    const texts = Array.isArray(values) && values.every((value) => typeof value === 'string')
    return texts ? { type: 'string', ...rest } : { ...rest }
  }
  const parts = anyOf as readonly Members[]
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
  | { [name: string]: Plain | undefined }

/**
 * A value as YAML 1.2 in block style, for people to read. Text that could be taken for anything
 * else is in double quotes, where YAML reads what JSON writes.
 */
export function toYaml(value: Plain) {
  return `${node(value, 0, '').trimStart()}\n`
}

/** A node at a depth; `lead` is the text before a value on the line of its key or dash. */
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

function scalar(text: string) {
  if (PLAIN.test(text) && !text.endsWith(' ') && !OTHER_TYPE.test(text)) return text
  // JSON leaves these as they are, YAML counts them as line ends or as unprintable.
  return JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** A reply as the documentation of an API shows it; without a schema it has no body. */
export interface ReplyDescription {
  description: string
  schema?: TSchema
  /** Media type of the body; `application/json` when absent. */
  type?: string
  /** Headers that the reply has beside the usual ones. */
  headers?: TObject
}

/**
 * A route of an API with its description, which becomes OpenAPI. Its schemas don't check requests
 * by themselves: the handler reads them, with refusals in the words of its contract.
 */
export interface Operation extends Route {
  /** `operationId`: unique in its API, such as `createLink`. */
  id: string
  summary: string
  /** What the summary leaves out. */
  description?: string
  /** The group that documentation shows it in. */
  tag: string
  /** False for what anybody may call; `optional` where a token is one way in of several. */
  needsToken: boolean | 'optional'
  /** Headers that the handler reads. */
  headers?: TObject
  /** Media types of the body; `application/json` when absent. */
  bodyTypes?: readonly string[]
  /** Success replies by status. */
  replies: Readonly<Record<number, ReplyDescription>>
  /** Statuses of the refusals that it may answer; one that `replies` describes is not repeated. */
  refusals: readonly number[]
}

/** What the document of an API says beside its operations. */
export interface ApiDescription {
  title: string
  version: string
  description: string
  /** Addresses of the service; the first is the public one. */
  servers: readonly Readonly<Record<'url' | 'description', string>>[]
  /** Every group with what it is about, in the order of the document. */
  tags: Readonly<Record<string, string>>
  operations: readonly Operation[]
  /** Schemas with a name: wherever an equal one stands, the document refers to it. */
  schemas: Readonly<Record<string, TSchema>>
  /** The body of each refusal, by its status. */
  refusals: Readonly<Record<number, ReplyDescription>>
  /** Where a caller gets the bearer token that operations need; absent when none does. */
  tokens?: string
}
