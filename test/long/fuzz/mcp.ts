import fc from 'fast-check'
import type { TSchema } from 'typebox'
import { fitting, unfit } from './values.ts'
import type { Known } from './values.ts'
import type { WireRequest } from './wire.ts'
import { META, MODERN, modern } from '../../helpers/mcp.ts'
import type { Endpoint } from '../../helpers/mcp.ts'

/** The headers that repeat what a message of the newest revision says. */
export function mirrored({ body }: WireRequest): [string, string][] {
  const [, method] = /"method":"([\w/]+)"/.exec(String(body)) ?? []
  const [, name] = /"(?:name|uri)":"([\w:/.-]+)","/.exec(String(body)) ?? []
  return [
    ['mcp-protocol-version', MODERN],
    ...(method === undefined ? [] : [['mcp-method', method] satisfies [string, string]]),
    ...(name === undefined ? [] : [['mcp-name', name] satisfies [string, string]]),
  ]
}

/** A tool as the server tells of it. */
export type Tool = { readonly name: string; readonly inputSchema: TSchema }

/** The tools with the schemas of their arguments, as the server tells them. */
export async function toolsOf(endpoint: Endpoint): Promise<readonly Tool[]> {
  const { result } = (await modern(endpoint, 'tools/list')).json<{ result: { tools: Tool[] } }>()
  return result.tools
}

/** Messages of the newest revision: calls of tools with arguments that fit and that do not, and others. */
export function messages(tools: readonly Tool[], known: Known): fc.Arbitrary<string> {
  const call = fc
    .constantFrom(...tools)
    .chain(({ name, inputSchema }) =>
      fitting(inputSchema, known).map((args) => ({ name, arguments: args })),
    )
  /** It would wait for most of a minute. */
  const hurried = (given: object): object =>
    text(given).includes('"wait_for') && !text(given).includes('"timeout_s"')
      ? { ...given, arguments: { timeout_s: 1 } }
      : given
  const named = (method: string, params: fc.Arbitrary<object>): fc.Arbitrary<object> =>
    params.map((given) => ({
      ...{ jsonrpc: '2.0', id: 'a-1', method },
      params: { ...given, _meta: META },
    }))
  const good = fc.oneof(
    { weight: 5, arbitrary: named('tools/call', call.map(hurried)) },
    { weight: 3, arbitrary: named('tools/call', unfit(call).filter(isObject).map(hurried)) },
    ...['tools/list', 'server/discover', 'resources/list', 'ping', 'odd', 'initialize'].map(
      (name) => named(name, fc.constant({})),
    ),
    named('resources/read', fc.constant({ uri: 'gatehouse://events/recent', x: 1 })),
    named('notifications/cancelled', fc.constant({ requestId: 'a-1' })),
  )
  return fc.oneof({ weight: 4, arbitrary: good }, { weight: 1, arbitrary: unfit(good) }).map(text)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function text(value: unknown): string {
  return JSON.stringify(value) ?? ''
}
