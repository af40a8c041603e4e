import * as Type from '../schema.ts'
import type { JsonObject } from '../json.ts'
import type { Actor } from '../actor.ts'
import { firstMismatch, fits } from '../validate.ts'

/** What one endpoint offers. */
export interface McpServer {
  name: string
  title: string
  version: string
  /** For the model of the client: what this server is for. */
  instructions: string
  /** In the order in which they are listed. */
  tools: readonly Tool[]
  resources: readonly Resource[]
  /** Resources that are not listed one by one. */
  templates: readonly ResourceTemplate[]
  /** Gets what a handler threw; the client only learns that something failed. */
  onFault: (what: string, error: unknown) => void
}

/**
 * The result of a tool, made by `toolValue`: its members as JSON, without braces. Calls that share
 * a result share its bytes.
 */
export type ToolResult = Uint8Array

/**
 * An expected failure of a handler. The client reads its message: in an error result of a tool, or
 * as -32603 with 503 from the read of a resource.
 */
export class CallError extends Error {
  override name = 'CallError'
  code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** What a handler knows of its request beside the arguments. */
export interface Call {
  /** Who calls. */
  actor: Actor
  /**
   * Aborted when nobody waits for the result any more. Costs time: only for handlers that wait.
   */
  gone(): AbortSignal
  /** Reports progress to a client that asked for it. Only a tool that `streams` can. */
  progress(done: number, total: number, message: string): void
  /** Whether a result may link resources: protocol version 2025-03-26 does not know such links. */
  readonly canLink: boolean
}

export interface Tool {
  name: string
  title: string
  description: string
  inputSchema: JsonObject
  outputSchema?: JsonObject
  annotations: ToolAnnotations
  /** A tool that takes time: answered as an event stream to clients that accept one. */
  streams: boolean
  /** Validates the arguments and does the work. */
  call: (args: unknown, call: Call) => Promise<ToolResult>
}

/** Hints of what a tool does. All four are given, because their defaults differ. */
export interface ToolAnnotations {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

/** The annotations of tools that change nothing. */
export const READ_ONLY: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** Contents of a resource: text, or base64 under `blob`. */
export type ResourceContents = {
  uri: string
  mimeType: string
} & ({ text: string } | { blob: string })

export interface Resource {
  uri: string
  name: string
  title: string
  description: string
  mimeType: string
  read: () => Promise<readonly ResourceContents[]>
}

/** A resource that a result names. */
export interface ResourceLink extends Omit<Resource, 'read'> {
  /** In bytes, before any encoding. */
  size: number
}

/** Resources whose URIs have one form. */
export interface ResourceTemplate extends Omit<Resource, 'uri' | 'mimeType' | 'read'> {
  /** Segments between slashes; one such as `{id}` stands for any text without a slash. */
  uriTemplate: string
  /** Undefined where no resource has this URI. */
  read: (
    uri: string,
    params: Readonly<Record<string, string>>,
  ) => Promise<readonly ResourceContents[] | undefined>
}

/** A tool by its schemas: they validate and type its arguments, and clients see them. */
interface ToolDefinition<Input extends Type.TProperties> extends Pick<
  Tool,
  'name' | 'title' | 'description' | 'annotations'
> {
  /** Other arguments are refused. */
  input: Input
  output?: Type.TObject
  streams?: true
  call: (args: Type.Static<Type.TObject<Input>>, call: Call) => Promise<ToolResult>
}

/** A tool of a definition. Arguments that do not fit throw a CallError. */
export function defineTool<Input extends Type.TProperties>(
  definition: ToolDefinition<Input>,
): Tool {
  const { input: properties, output, streams = false, ...shown } = definition
  const input = Type.Object(properties, { additionalProperties: false })
  return {
    ...shown,
    inputSchema: describeSchema(input),
    ...(output !== undefined && { outputSchema: describeSchema(output) }),
    streams,
    async call(args, call) {
      if (fits(input, args)) return definition.call(args, call)
      throw new CallError('invalid_argument', `${firstMismatch(input, args, 'arguments')}.`)
    },
  }
}

/** The result of a failed call: a code for programs and a line for the model. */
export function toolError(code: string, message: string): ToolResult {
  const text = JSON.stringify({ error: { code, message } })
  return toMembers([{ type: 'text', text }], ',"isError":true')
}

/** A result for the model alone: a text, which may say why the call failed. */
export function toolText(text: string, isError: boolean): ToolResult {
  return toMembers([{ type: 'text', text }], isError ? ',"isError":true' : '')
}

/**
 * A tool's value, which conforms to its output schema, as structured content and repeated as text
 * for clients that know only that.
 */
export function toolValue(
  value: JsonObject,
  notice?: string,
  links: readonly ResourceLink[] = [],
): ToolResult {
  const text = JSON.stringify(value)
  const content: JsonObject[] = [{ type: 'text', text }]
  if (notice !== undefined) content.push({ type: 'text', text: notice })
  content.push(...links.map((link) => ({ type: 'resource_link', ...link })))
  return toMembers(content, `,"structuredContent":${text}`)
}

function toMembers(content: readonly JsonObject[], more: string): ToolResult {
  return Buffer.from(`"content":${JSON.stringify(content)}${more}`)
}

/** A schema as plain JSON, without an empty list of properties. */
export function describeSchema(schema: Type.TObject): JsonObject {
  const { properties, ...plain } = JSON.parse(JSON.stringify(schema)) as JsonObject & {
    properties: JsonObject
  }
  return Object.keys(properties).length === 0 ? plain : { ...plain, properties }
}

/** JSON for clients that read `mcpServers`, as most do. */
export function clientConfiguration(baseUrl: string, name: string, token: string): string {
  const url = `${baseUrl}/mcp/${name}`
  const headers = { Authorization: `Bearer ${token}` }
  const mcpServers = { [`gatehouse-${name}`]: { type: 'http', url, headers } }
  return JSON.stringify({ mcpServers }, null, 2)
}
