import { parse } from 'yaml'
import { Compile } from 'typebox/schema'
import { isApi, type Exchange } from './exchanges.ts'

type Reply = { content?: Record<string, { schema: object }> }
type Operation = { responses: Record<string, Reply> }

/** An OpenAPI document with all references replaced by what they name. */
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object> }
}

type Check = (value: unknown) => boolean

/** How exchanges of an API compare with its document. */
type Comparison = {
  /** A line for each way in which an answer is not as the document has it. */
  faults: readonly string[]
  /** Operations of the API that never succeeded, as `GET /path`. */
  unreached: readonly string[]
}

/**
 * Compares answers with the schemas of the document: their status, media type, body, and the
 * headers that every answer has.
 */
export function compare(text: string, exchanges: readonly Exchange[]): Comparison {
  const document = resolved(parse(text))
  const check = compiler()
  const reached = new Set<Operation>()
  const faults = new Set<string>()
  for (const exchange of exchanges) {
    const operation = operationOf(document, exchange)
    if (operation !== undefined && exchange.status < 400) reached.add(operation)
    for (const fault of faultsOf(document, operation, exchange, check)) {
      const { method, target, status } = exchange
      faults.add(`${method} ${target.slice(0, 80)} → ${status}: ${fault}`)
    }
  }
  const unreached = Object.entries(document.paths)
    .filter(([path]) => isApi(path))
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, operation]) => !reached.has(operation))
        .map(([method]) => `${method.toUpperCase()} ${path}`),
    )
  return { faults: [...faults], unreached }
}

function* faultsOf(
  document: Document,
  operation: Operation | undefined,
  { status, answerHeaders: headers, answer }: Exchange,
  check: (schema: object) => Check,
): Generator<string> {
  const body = Buffer.from(answer, 'base64')
  const [type = 'none'] = headers['content-type']?.split(';') ?? []
  if (headers['x-content-type-options'] !== 'nosniff') yield 'it has no nosniff'
  if (!/^\S+$/.test(headers['x-request-id']?.toString() ?? '')) yield 'it has no x-request-id'
  if (operation === undefined && status < 400) yield 'the document has no such operation'
  const reply = operation?.responses[status] ?? refusalOf(document, operation, status)
  if (reply === undefined) return yield 'its status is not documented'
  if (reply.content === undefined) return body.length === 0 ? undefined : yield 'it has a body'
  const content = reply.content[type]
  if (content === undefined) return yield `${type} is not its documented type`
  if (/[/+]json$/.test(type) && !check(content.schema)(parsed(body))) {
    yield `its body is not as documented: ${body.toString('utf8').slice(0, 200)}`
  }
}

/** Paths and methods that no operation has are refused, with an error as all have. */
function refusalOf(
  { components: { schemas } }: Document,
  operation: Operation | undefined,
  status: number,
): Reply | undefined {
  if (operation !== undefined || status < 400) return undefined
  return schemas['Problem'] === undefined
    ? { content: { 'application/json': { schema: schemas['Error'] ?? {} } } }
    : { content: { 'application/problem+json': { schema: schemas['Problem'] } } }
}

/** The operation whose path has most of its parts in common with the target. */
function operationOf({ paths }: Document, { method, target }: Exchange) {
  const parts = target.split('?', 1)[0]?.split('/') ?? []
  const fits = (path: string) => {
    const own = path.split('/')
    const isLike = (part: string, at: number) =>
      part.startsWith('{') ? parts[at] !== '' : part === parts[at]
    return own.length === parts.length && own.every(isLike)
  }
  const [path = ''] = Object.keys(paths)
    .filter(fits)
    .toSorted((a, b) => a.split('{').length - b.split('{').length)
  return paths[path]?.[method.toLowerCase()]
}

function compiler(): (schema: object) => Check {
  const compiled = new Map<object, Check>()
  return (schema) =>
    compiled.getOrInsertComputed(schema, () => {
      const validator = Compile(schema)
      return (value) => validator.Check(value)
    })
}

/** Schemas refer to others by name, and never to themselves. */
function resolved(document: Document) {
  const seen = new Map<string, unknown>()
  function visit(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== 'object' || value === null) return value
    if ('$ref' in value && typeof value.$ref === 'string') return named(value.$ref)
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, visit(inner)]))
  }
  function named(reference: string): unknown {
    if (!seen.has(reference)) {
      const steps = reference.split('/').slice(1)
      const found = steps.reduce<unknown>((inner, step) => Object(inner)[step], document)
      seen.set(reference, visit(found))
    }
    return seen.get(reference)
  }
  return visit(document) as Document
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}
