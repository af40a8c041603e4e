import type Type from 'typebox'
import type { JsonObject } from '../json.ts'
import { firstMismatch, fits } from '../validate.ts'

/** What one endpoint offers. */
export interface McpServer {
  readonly name: string
  readonly title: string
  readonly version: string
  /** For the model of the client: what this server is for. */
  readonly instructions: string
  /** In the order in which they are listed. */
  readonly tools: readonly Tool[]
  /** Without any, resources are not advertised. */
  readonly resources?: readonly Resource[]
  /** Gets what a handler threw; the client only learns that something failed. */
  readonly onFault: (what: string, error: unknown) => void
}

/** One block of a result: text, image, audio or an embedded resource, as MCP writes it. */
export type Content = JsonObject & { readonly type: string }

/** The result of a tool, made by `toolValue`, `toolContent` or `toolError`. */
export interface ToolResult {
  /**
   * The members of the result as JSON, without its braces: calls that share a result share its
   * bytes.
   */
  readonly members: Uint8Array
  readonly isError?: true
}

/**
 * Thrown by a handler that can't answer now: becomes -32603 with its message, which the client
 * reads.
 */
export class TryLater extends Error {
  override name = 'TryLater'
}

/** What a handler knows of its request beside the arguments. */
export interface Call {
  /** Aborted when nobody waits for the result any more. Costs time: only for handlers that wait. */
  gone(): AbortSignal
  /** Reports progress to a client that asked for it. Only a tool that `streams` can. */
  progress(done: number, total: number, message: string): void
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: JsonObject
  readonly outputSchema?: JsonObject
  readonly annotations: ToolAnnotations
  /** A tool that takes time: answered as an event stream to clients that accept one. */
  readonly streams: boolean
  /** Validates the arguments and does the work. */
  readonly call: (args: unknown, call: Call) => Promise<ToolResult>
}

/** Hints of what a tool does. All four are given, because their defaults differ. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

/** Contents of a resource: text, or base64 under `blob`. */
export type ResourceContents = {
  readonly uri: string
  readonly mimeType: string
} & ({ readonly text: string } | { readonly blob: string })

export interface Resource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: string
  readonly read: () => Promise<ResourceContents>
}

/** A tool by its schemas: they validate and type its arguments, and clients see them. */
interface ToolDefinition<Input extends Type.TObject> extends Pick<
  Tool,
  'name' | 'title' | 'description' | 'annotations'
> {
  readonly input: Input
  readonly output?: Type.TObject
  readonly streams?: true
  readonly call: (args: Type.Static<Input>, call: Call) => Promise<ToolResult>
}

/** A tool of a definition. Arguments that do not fit give an error result. */
export function defineTool<Input extends Type.TObject>(definition: ToolDefinition<Input>): Tool {
  const { name, title, description, input, output, annotations, streams = false } = definition
  return {
    name,
    title,
    description,
    inputSchema: describeSchema(input),
    ...(output !== undefined && { outputSchema: describeSchema(output) }),
    annotations,
    streams,
    call(args, call) {
      if (fits(input, args)) return definition.call(args, call)
      const message = `${firstMismatch(input, args, 'arguments')}.`
      return Promise.resolve(toolError('invalid_argument', message))
    },
  }
}

/** The result of a failed call: a code for programs and a line for the model. */
export function toolError(code: string, message: string): ToolResult {
  const text = JSON.stringify({ error: { code, message } })
  return { members: toMembers([{ type: 'text', text }], ',"isError":true'), isError: true }
}

/**
 * A tool's value, which conforms to its output schema, as structured content and repeated as text
 * for clients that know only that.
 */
export function toolValue(value: JsonObject, notice?: string): ToolResult {
  const text = JSON.stringify(value)
  const content = [{ type: 'text', text }]
  if (notice !== undefined) content.push({ type: 'text', text: notice })
  return { members: toMembers(content, `,"structuredContent":${text}`) }
}

/** A result of blocks alone. */
export function toolContent(...content: readonly Content[]): ToolResult {
  return { members: toMembers(content, '') }
}

function toMembers(content: readonly Content[], more: string): Uint8Array {
  return Buffer.from(`"content":${JSON.stringify(content)}${more}`)
}

/** A schema as plain JSON, without an empty list of properties. */
function describeSchema(schema: Type.TObject): JsonObject {
  const { properties, ...plain } = JSON.parse(JSON.stringify(schema)) as JsonObject & {
    readonly properties: JsonObject
  }
  return Object.keys(properties).length === 0 ? plain : { ...plain, properties }
}
