import type { Members } from './json-rpc.ts'

/** What one endpoint offers: a plain value. What it has no list of is not advertised. */
export interface McpServer {
  readonly name: string
  readonly title: string
  readonly version: string
  /** For the model on the other side: what this server is for. */
  readonly instructions: string
  /** In the order in which they are listed. */
  readonly tools: readonly Tool[]
  readonly prompts?: readonly Prompt[]
  readonly resources?: readonly Resource[]
  readonly templates?: readonly ResourceTemplate[]
  /** Values that would complete an argument of a prompt or a template. */
  readonly complete?: (reference: Members, argument: Members) => readonly string[]
  /** Told what a handler threw; the client only learns that something failed. */
  readonly onFault: (what: string, error: unknown) => void
}

/** One block of a result: text, image, audio or an embedded resource, as MCP writes it. */
export type Content = Members & { readonly type: string }

/** What a tool answers, as `tool.ts` makes it. */
export interface ToolResult {
  /** The members of the result as JSON, without its braces: written once for all who share it. */
  readonly members: Uint8Array
  readonly isError?: true
}

/**
 * The answer of a handler that first needs something from the client's user or model; the client
 * asks again with `inputResponses`. Only the modern era can say this.
 */
export interface InputRequired {
  readonly inputRequests: Readonly<Record<string, { readonly method: string } & Members>>
  /** Comes back as it is, from whoever sends it: a handler that relies on it must protect it. */
  readonly requestState?: string
}

/** Thrown by a handler whose request can't be answered at all: becomes -32602. */
export class BadRequest extends Error {
  override name = 'BadRequest'
}

/** Thrown by a handler that can't answer now: becomes -32603 with its message, for the client to read. */
export class TryLater extends Error {
  override name = 'TryLater'
}

/** What a handler knows of its request beside the arguments. */
export interface Call {
  /** Capabilities that the client declared; empty in the legacy era. */
  readonly capabilities: Members
  readonly inputResponses: Members
  readonly requestState: string | undefined
  /** Aborted when nobody waits for the answer any more: what takes its time asks, as each signal has its price. */
  gone(): AbortSignal
  /** Tells a client that asked for it how far the work is; only a tool that `streams` can. */
  progress(done: number, total: number, message: string): void
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Members
  readonly outputSchema?: Members
  readonly annotations: ToolAnnotations
  /** True for a tool that takes its time: answered as an event stream where the client takes one. */
  readonly streams: boolean
  /** Validates the arguments and does the work. */
  readonly call: (args: unknown, call: Call) => Promise<ToolResult | InputRequired>
}

/** Hints of what a tool does; all four are said, because their defaults differ. */
export interface ToolAnnotations {
  readonly readOnlyHint: boolean
  readonly destructiveHint: boolean
  readonly idempotentHint: boolean
  readonly openWorldHint: boolean
}

export interface Prompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: readonly {
    readonly name: string
    readonly description: string
    readonly required: boolean
  }[]
  readonly get: (args: Members, call: Call) => readonly PromptMessage[] | InputRequired
}

export interface PromptMessage {
  readonly role: 'user' | 'assistant'
  readonly content: Content
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

export interface ResourceTemplate {
  readonly uriTemplate: string
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: string
  /** Undefined for a URI that is none of this template's. */
  readonly read: (uri: string) => Promise<ResourceContents | undefined>
}
