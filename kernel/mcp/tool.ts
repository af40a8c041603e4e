import type Type from 'typebox'
import { firstMismatch, fits } from '../validate.ts'
import type { Members } from './json-rpc.ts'
import type { Call, Content, InputRequired, Tool, ToolAnnotations, ToolResult } from './server.ts'

/** A tool by its schemas: they validate its arguments, type them, and are what clients are shown. */
export interface ToolDefinition<Input extends Type.TObject> {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly input: Input
  readonly output?: Type.TObject
  readonly annotations: ToolAnnotations
  readonly streams?: true
  readonly call: (args: Type.Static<Input>, call: Call) => Promise<ToolResult | InputRequired>
}

/** Joins the definition with the validation of its arguments: bad ones are an error result. */
export function defineTool<Input extends Type.TObject>(definition: ToolDefinition<Input>): Tool {
  const { name, title, description, input, output, annotations, streams = false } = definition
  return {
    name,
    title,
    description,
    inputSchema: shownSchema(input),
    ...(output !== undefined && { outputSchema: shownSchema(output) }),
    annotations,
    streams,
    call(args, call) {
      if (fits(input, args)) return definition.call(args, call)
      const message = `${firstMismatch(input, args, 'arguments')}.`
      return Promise.resolve(toolError('invalid_argument', message))
    },
  }
}

/** The result of a tool that could not do it: a code for programs and a line for the model. */
export function toolError(code: string, message: string): ToolResult {
  const text = JSON.stringify({ error: { code, message } })
  return { members: membersOf([{ type: 'text', text }], ',"isError":true'), isError: true }
}

/**
 * A tool's value, which conforms to its output schema, as structured content and repeated as text
 * for clients that know only that.
 */
export function toolValue(value: Members, notice?: string): ToolResult {
  const text = JSON.stringify(value)
  const content = [{ type: 'text', text }]
  if (notice !== undefined) content.push({ type: 'text', text: notice })
  return { members: membersOf(content, `,"structuredContent":${text}`) }
}

/** A result of blocks alone. */
export function toolContent(...content: readonly Content[]): ToolResult {
  return { members: membersOf(content, '') }
}

function membersOf(content: readonly Content[], more: string): Uint8Array {
  return Buffer.from(`"content":${JSON.stringify(content)}${more}`)
}

/** A schema as plain JSON: an object without properties needs no empty list of them. */
function shownSchema(schema: Type.TObject): Members {
  const { properties, ...plain } = JSON.parse(JSON.stringify(schema)) as Members & {
    readonly properties: Members
  }
  return Object.keys(properties).length === 0 ? plain : { ...plain, properties }
}
