import Type, { type TObject, type TSchema } from 'typebox'
import { MODERN, modern, type Endpoint } from '../helpers/mcp.ts'
import type { Headers, Sent } from './fuzz.ts'

/** An error as the tool protocol has it. */
export const RPC_FAULT = Type.Object({ jsonrpc: Type.Literal('2.0'), error: Type.Object({}) })

/** Calls of the tools that an endpoint lists. */
export async function toolCalls(endpoint: Endpoint): Promise<TSchema> {
  const listed = await modern(endpoint, 'tools/list')
  const { result } = listed.json<{
    result: { tools: { name: string; inputSchema: Partial<TObject> }[] }
  }>()
  const calls = result.tools.map(({ name, inputSchema }) => {
    const members = Object.keys(inputSchema.properties ?? {})
    // A call without its timeout would take most of a minute.
    const required = members.includes('timeout_s') ? members : inputSchema.required
    const args = { ...inputSchema, ...(required && { required }) }
    return Type.Object({ name: Type.Literal(name), arguments: args, _meta: Type.Unknown() })
  })
  const method = Type.Literal('tools/call')
  const id = Type.Literal('a-1')
  return Type.Object({ jsonrpc: Type.Literal('2.0'), id, method, params: Type.Union(calls) })
}

/** Headers of a tool call, which repeat what its body says. */
export function toolHeaders({ token }: Endpoint, { body = '' }: Sent): Headers {
  const [, name] = /"params":\{"name":"(\w+)"/.exec(String(body)) ?? []
  const version = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call' }
  return { authorization: `Bearer ${token}`, ...version, ...(name && { 'mcp-name': name }) }
}
