import { request } from '../test/helpers/http.ts'
import { addEndpoint, META, MODERN, modern, type Endpoint } from '../test/helpers/mcp.ts'
import type { RequestText } from './helpers/load-worker.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { seedEvents } from './helpers/event-seed.ts'
import { atLeast, median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { portOf, startBenchServer } from './helpers/server.ts'
import { loadRound, type LoadRound } from './helpers/wrk.ts'

const EVENTS = 5_000
const ROUNDS = 5
const SECONDS = 3
/** Fewer than the calls of one endpoint that may run at a time. */
const CONNECTIONS = 16
const BOUND = 0.5
const CALL = { name: 'list_webhook_events', arguments: {} }

/** `tools/call` of the list tool, a page of 50, beside bare node:http that answers the same bytes, in alternating rounds. */
export const mcp: Part = {
  name: 'mcp',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const server = await startBenchServer(owner, { DATABASE_URL: url })
    await seedEvents(url, EVENTS)
    const endpoint = await addEndpoint(server.hooks, 'bench')
    const { text } = await modern(endpoint, 'tools/call', CALL)
    const bare = await startBare(owner, 'bare-answer.ts', text)
    const ports = { bare: bare.port, gatehouse: portOf(server.hooks) }
    const rounds: Record<keyof typeof ports, LoadRound[]> = { bare: [], gatehouse: [] }
    const load = { connections: CONNECTIONS, seconds: SECONDS, expect: 'HTTP/1.1 200' }
    for (let round = -1; round < ROUNDS; round++) {
      for (const name of ['bare', 'gatehouse'] as const) {
        const made = await loadRound({
          ...load,
          port: ports[name],
          requests: [callText(endpoint)],
        })
        // The first round lets the code become fast: it is made, not measured.
        if (round >= 0) rounds[name].push(made)
      }
    }
    // A call that failed is answered with 200, too.
    const { text: metrics } = await request(`${server.hooks}/metrics`)
    if (/^gatehouse_hooks_tool_calls.*outcome="error"\} [1-9]/m.test(metrics))
      throw new Error('calls of the tool have failed')
    const rate = (name: keyof typeof ports): number =>
      median(rounds[name].map(({ perSecond }) => perSecond))
    const p99 = (name: keyof typeof ports): number => median(rounds[name].map((each) => each.p99))
    return [
      { name: 'size of an answer', value: Buffer.byteLength(text), unit: 'bytes' },
      { name: 'bare (median)', value: rate('bare'), unit: '/s' },
      { name: 'Gatehouse (median)', value: rate('gatehouse'), unit: '/s' },
      atLeast('Gatehouse / bare', rate('gatehouse') / rate('bare'), BOUND),
      { name: 'p99 bare (median)', value: p99('bare'), unit: 'ms' },
      { name: 'p99 Gatehouse (median)', value: p99('gatehouse'), unit: 'ms' },
    ]
  },
}

/** The request of the newest revision as it goes over the wire, before and after a header of its own each. */
function callText({ url, token }: Endpoint): RequestText {
  const params = { _meta: META, ...CALL }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'a-1', method: 'tools/call', params })
  const lines = [
    `POST ${new URL(url).pathname} HTTP/1.1`,
    'Host: 127.0.0.1',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `MCP-Protocol-Version: ${MODERN}`,
    'Mcp-Method: tools/call',
    `Mcp-Name: ${CALL.name}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return { head: `${lines.join('\r\n')}\r\nX-Call: `, tail: `\r\n\r\n${body}` }
}
