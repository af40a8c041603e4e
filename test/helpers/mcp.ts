import { request, type RequestOptions, type Response } from './http.ts'
import { expectStatus } from './refusals.ts'
import { shownSecret } from './secrets.ts'
import { postForm } from './hooks.ts'

/** An endpoint of the tool protocol, and its token. */
export type Endpoint = { url: string; token: string }

/** A JSON object of an answer; what a test reads out of it, it checks. */
export type Json = { [name: string]: Json } & { length?: number }

/** The newest revision, whose requests are complete in themselves. */
export const MODERN = '2026-07-28'

/** What every modern request says of itself. */
export const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
} as const

/** Makes an endpoint on the settings page. */
export async function addEndpoint(
  base: string,
  name: string,
  fields: Record<string, string> = {},
) {
  const made = postForm(base, '/settings/endpoints', { name, ...fields })
  const page = await expectStatus(200, made, name)
  return { url: `${base}/mcp/${name}`, token: endpointToken(page) }
}

/** The token of a new endpoint. */
export function endpointToken(page: Response) {
  return shownSecret(page, 'endpoint-token')
}

type Headers = NonNullable<RequestOptions['headers']>

/** Posts a body as it is, with the endpoint's token unless the headers bring another. */
export function postRaw(
  { url, token }: Endpoint,
  body: NonNullable<RequestOptions['body']>,
  headers: Headers = {},
) {
  const all = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, ...headers }
  return request(url, { method: 'POST', headers: all, body, timeoutMs: 60_000 })
}

/** A request of the 2025 era. */
export function legacy(
  endpoint: Endpoint,
  method: string,
  params: object = {},
  headers: Headers = {},
) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  return postRaw(endpoint, body, headers)
}

/** A request of the 2026 era with the headers that repeat its body. */
export function modern(
  endpoint: Endpoint,
  method: string,
  params: Record<string, unknown> = {},
  headers: Headers = {},
) {
  const name = params['name'] ?? params['uri']
  const mirrored = {
    'MCP-Protocol-Version': MODERN,
    'Mcp-Method': method,
    ...(typeof name === 'string' && { 'Mcp-Name': name }),
  }
  const all = { _meta: META, ...params }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'a-1', method, params: all })
  return postRaw(endpoint, body, { ...mirrored, ...headers })
}

/** Calls a tool and gives its result, from whichever kind of answer. */
export async function callTool(
  endpoint: Endpoint,
  name: string,
  args: Record<string, unknown> = {},
  headers: Headers = {},
): Promise<Json> {
  const called = modern(endpoint, 'tools/call', { name, arguments: args }, headers)
  const answer = await expectStatus(200, called, name)
  const lines = answer.text.split('\n').filter((line) => line.startsWith('data: '))
  const last = lines.at(-1)?.slice('data: '.length) ?? answer.text
  return (JSON.parse(last) as Json)['result'] as Json
}

/** The error in a tool's result. */
export function errorOf(result: Json): { code: string; message: string } {
  const [block] = result['content'] as unknown as readonly { text: string }[]
  if (String(result['isError']) !== 'true' || block === undefined)
    throw new Error(`expected an error result, was ${JSON.stringify(result)}`)
  return (JSON.parse(block.text) as { error: { code: string; message: string } }).error
}
