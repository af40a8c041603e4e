import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import type { Endpoint } from '../helpers/mcp.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

/** What both generations of the official client have in common, as far as it is used here. */
type Official = {
  listTools(): Promise<{ tools: readonly { name: string }[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<object>
  listResources(): Promise<{ resources: readonly { uri: string }[] }>
  readResource(resource: { uri: string }): Promise<{ contents: readonly object[] }>
  getServerVersion(): { name: string } | undefined
  getInstructions(): string | undefined
  close(): Promise<void>
}

const info = { name: 'gatehouse-test', version: '1.0.0' }
const init = ({ token }: Endpoint): { requestInit: RequestInit } => ({
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
})

const [embedded] = backends
const receiver = await startReceiver(t)
const allowed = { HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}` }
const { base } = await startHooks(t, embedded, allowed)
await addProvider(base, 'lan', { open: true })
const endpoint = await addEndpoint(base, 'agent', { allow_replay: 'true' })
const url = new URL(endpoint.url)
const send = async (): Promise<number> => (await post(base, 'generic/lan', '{}')).json<Ack>().id

/** Lists and calls every tool; the clients themselves validate structured content by its schema. */
async function useEverything(t: Test, client: Official): Promise<void> {
  t.teardown(() => client.close())
  t.equal(client.getServerVersion()?.name, 'gatehouse')
  t.match(client.getInstructions(), /untrusted/)
  const { tools } = await client.listTools()
  const names = tools.map(({ name }) => name)
  const id = await send()
  const calls: Readonly<Record<string, () => Promise<object>>> = {
    list_webhook_events: () =>
      call('list_webhook_events', { provider: 'generic:lan', text: '{', limit: 5 }),
    get_webhook_event: () => call('get_webhook_event', { id }),
    list_providers: () => call('list_providers', {}),
    async wait_for_webhook_event() {
      let over = false
      const waiting = call('wait_for_webhook_event', { timeout_s: 55 }).finally(() => (over = true))
      await until(async () => over || (await send(), over), 'the wait to end', 30_000)
      return waiting
    },
    async replay_webhook_event() {
      const { length } = receiver.received
      const target_url = `${receiver.url}/replayed`
      const result = await call('replay_webhook_event', { id, target_url })
      t.match(result, { structuredContent: { id, delivered: true, response_status: 204 } })
      t.same(
        receiver.received.slice(length).map(({ path, body }) => [path, body.toString()]),
        [['/replayed', '{}']],
        'the target got it once',
      )
      return result
    },
  }
  function call(name: string, args: Record<string, unknown>): Promise<object> {
    return client.callTool({ name, arguments: args })
  }
  t.same(names, Object.keys(calls), 'every tool is called here')
  for (const name of names) {
    const result = await calls[name]?.()
    t.notMatch(result, { isError: true }, name)
    t.match(result, { structuredContent: {}, content: [{ type: 'text' }] }, name)
  }
  t.match(await call('list_webhook_events', { json: 'no.value' }), { isError: true })
  t.match(await call('get_webhook_event', { id: 999_999 }), { isError: true })
  t.match(await call('get_webhook_event', { id: 'x' }), { isError: true })
  await t.rejects(call('rm_rf', {}), { code: -32602 })
  const { resources } = await client.listResources()
  t.match(resources, [{ uri: 'gatehouse://events/recent' }])
  for (const { uri } of resources) {
    const { contents } = await client.readResource({ uri })
    t.match(contents, [{ uri, mimeType: 'application/json' }])
  }
}

t.test('the newest 1.x client, with the handshake', async (t) => {
  const client = new Client(info)
  const transport = new StreamableHTTPClientTransport(url, init(endpoint))
  // Its own types disagree about an absent session id under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<Client['connect']>[0])
  t.equal(transport.sessionId, undefined)
  t.equal(transport.protocolVersion, '2025-11-25')
  await useEverything(t, client as Official)
})

t.test('the 2.x client, with the handshake', async (t) => {
  const client = new Client2(info)
  await client.connect(new Transport2(url, init(endpoint)))
  t.equal(client.getProtocolEra(), 'legacy')
  await useEverything(t, client as Official)
})

for (const mode of ['auto', { pin: '2026-07-28' }] as const) {
  t.test(`the 2.x client, stateless (${JSON.stringify(mode)})`, async (t) => {
    const client = new Client2(info, { versionNegotiation: { mode } })
    await client.connect(new Transport2(url, init(endpoint)))
    t.equal(client.getProtocolEra(), 'modern')
    await useEverything(t, client as Official)
  })
}

t.test('progress reaches a client that asks for it', async (t) => {
  const client = new Client2(info, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new Transport2(url, init(endpoint)))
  t.teardown(() => client.close())
  const told: unknown[] = []
  const args = { provider: 'generic:nobody', timeout_s: 6 }
  const call = { name: 'wait_for_webhook_event', arguments: args }
  await client.callTool(call, { onprogress: (progress) => told.push(progress) })
  t.match(told, [{ total: 6, message: 'Waiting for an event' }])
})

t.test('a wrong token is told as such', async (t) => {
  const wrong = { ...endpoint, token: 'not-the-token' }
  const client = new Client2(info)
  await t.rejects(client.connect(new Transport2(url, init(wrong))), /401|[Uu]nauthorized/)
})
