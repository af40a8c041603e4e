import { STATUS_CODES } from 'node:http'
import type { TObject, TSchema } from 'typebox'
import type { ApiDescription, Operation, ReplyDescription } from './operation.ts'
import type { Plain } from './yaml.ts'

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
      shown[keyword] = Object.fromEntries(members.map(([name, part]) => [name, one(part, show)]))
    } else if (keyword === 'items') shown[keyword] = one(value, show)
    else if (keyword === 'anyOf' || keyword === 'allOf') {
      shown[keyword] = (value as readonly Plain[]).map((part) => one(part, show))
    } else shown[keyword] = value
  }
  return shorter(shown)
}

function one(part: Plain | undefined, show: (schema: Members) => Members): Members {
  return show(part as Members)
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
