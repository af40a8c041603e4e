import { META, type Era } from './era.ts'
import type { Members } from './json-rpc.ts'
import type { McpServer, Prompt, Resource, ResourceTemplate, Tool } from './server.ts'

/** A method's result; `freshMs` is how long a client may keep a cacheable one. */
export interface Success {
  readonly result: Members
  readonly freshMs?: number
  /** Further members of the result, as JSON without braces. */
  readonly shared?: Uint8Array
}

/** Who answers; part of every modern result. */
export function serverInfo({ name, title, version }: McpServer): Members {
  return { name, title, version }
}

/** What the server offers at all. Nothing changes while a client looks, so nothing is subscribed to. */
export function capabilities({ prompts, resources, complete }: McpServer): Members {
  return {
    tools: {},
    ...(prompts && { prompts: {} }),
    ...(resources && { resources: {} }),
    ...(complete && { completions: {} }),
  }
}

export function shownTool(tool: Tool): Members {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  return { name, title, description, inputSchema, outputSchema, annotations }
}

export function shownPrompt({ name, title, description, arguments: args }: Prompt): Members {
  return { name, title, description, arguments: args }
}

export function shownResource({ uri, name, title, description, mimeType }: Resource): Members {
  return { uri, name, title, description, mimeType }
}

export function shownTemplate(template: ResourceTemplate): Members {
  const { uriTemplate, name, title, description, mimeType } = template
  return { uriTemplate, name, title, description, mimeType }
}

/** A result as its era writes it: the modern one says what it is, who answers, and for how long. */
export function dressResult(server: McpServer, era: Era, { result, freshMs }: Success): Members {
  if (era === 'legacy') return result
  return {
    resultType: 'complete',
    ...result,
    ...(freshMs !== undefined && { ttlMs: freshMs, cacheScope: 'private' }),
    _meta: { [META.serverInfo]: serverInfo(server) },
  }
}
