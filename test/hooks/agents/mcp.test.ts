import {
  Client as Client2,
  StreamableHTTPClientTransport as Transport2,
} from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { t, type Test } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import {
  META,
  MODERN,
  addEndpoint,
  endpointToken,
  legacy,
  modern,
  postRaw,
  type Endpoint,
  type Json,
} from '../../helpers/mcp.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { refuseAll } from '../../helpers/refusals.ts'
import { addProvider, formCall, postForm, startHooks, store } from '../../helpers/hooks.ts'
import { secret } from '../../helpers/secrets.ts'
import { startServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'

const receiver = await startReceiver(t)
const allowed = { HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}` }
const { base, env } = await startHooks(t, postgres, allowed)
await addProvider(base, 'lan', { open: true })
const endpoint = await addEndpoint(base, 'agent', { allow_replay: 'true' })
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
const SUPPORTED = [MODERN, '2025-11-25', '2025-06-18', '2025-03-26']

t.test('refused requests', async (t) => {
  const { url, token } = endpoint
  const call = 'POST /mcp/agent'
  const padding = ' '.repeat(1024 * 1024 - PING.length)
  const bearer = { Authorization: `Bearer ${token}` }
  const state = async () => (await modern(endpoint, 'tools/list')).text
  const sneaking = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'same-origin' }
  await refuseAll(t, { service: 'hooks', base, headers: bearer, state }, [
    [{ call, body: PING, headers: { Host: 'evil.example' } }, 403],
    [{ call, body: PING, headers: sneaking }, 403],
    [{ call, body: PING, headers: { 'Content-Type': 'text/plain' } }, 415],
    [call, 415],
    [{ call, body: `${PING + padding} ` }, 413],
    ['GET /mcp/agent', 405],
  ])
  const chunks = ['{"jsonrpc":', ' '.repeat(1024 * 1024), '"2.0"}']
  t.equal((await postRaw(endpoint, chunks)).status, 413, 'one byte more, in chunks')
  t.equal((await request(url, { headers: bearer })).headers['allow'], 'POST')

  const own = { Origin: base, 'Content-Type': 'application/json; charset=utf-8' }
  const accepted = await postRaw(endpoint, PING, own)
  t.equal(accepted.status, 200, 'an Origin of its own, a media type with a parameter')
  t.equal((await postRaw(endpoint, PING + padding)).status, 200, '1 MiB')
})

t.test('a body that is no message is refused with 400', async (t) => {
  const cases: readonly (readonly [string | Uint8Array, number, unknown])[] = [
    ['{', -32700, null],
    [Buffer.from('{"jsonrpc":"2.0","id":1,"method":"p\xffng"}', 'latin1'), -32700, null],
    ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, null],
    ['null', -32600, null],
    ['{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7],
    ['{"jsonrpc":"2.0","id":7,"method":"ping","params":[1]}', -32600, 7],
    ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, null],
  ]
  for (const [body, code, id] of cases) {
    const answer = await postRaw(endpoint, body)
    t.equal(answer.status, 400, String(body))
    t.match(answer.json(), { jsonrpc: '2.0', id, error: { code } }, String(body))
  }
})

t.test('2025: handshake, ping, notifications, errors within a 200', async (t) => {
  const spoken = '2025-11-25'
  const versions: readonly (readonly [unknown, string])[] = [
    [spoken, spoken],
    ['2025-03-26', '2025-03-26'],
    ['2024-11-05', spoken],
    [7, spoken],
  ]
  for (const [protocolVersion, agreed] of versions) {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'x' } }
    const answer = await legacy(endpoint, 'initialize', params)
    t.equal(answer.headers['mcp-session-id'], undefined, 'there are no sessions')
    t.match(answer.json(), {
      id: 1,
      result: {
        protocolVersion: agreed,
        serverInfo: { name: 'gatehouse', version: /^\d+\.\d+\.\d+/ },
        capabilities: { tools: {}, resources: {} },
        instructions: /untrusted/,
      },
    })
  }
  const known = { 'MCP-Protocol-Version': '2025-06-18' }
  const pong = { jsonrpc: '2.0', id: 1, result: {} }
  t.same((await legacy(endpoint, 'ping', {}, known)).json(), pong)
  const notices = ['{"jsonrpc":"2.0","method":"whatever"}', '{"jsonrpc":"2.0","id":1,"result":{}}']
  for (const notice of notices) {
    const { status, text } = await postRaw(endpoint, notice)
    t.same([status, text], [202, ''], notice)
  }
  const unknown = await legacy(endpoint, 'server/discover')
  t.match([unknown.status, unknown.json()], [200, { id: 1, error: { code: -32601 } }])
  const tool = await legacy(endpoint, 'tools/call', { name: 'rm_rf' })
  t.match([tool.status, tool.json()], [200, { error: { code: -32602 } }])
})

t.test(
  'a version that is not spoken is refused with 400 and the list of those that are',
  async (t) => {
    const unknown = { 'MCP-Protocol-Version': '1999-01-01' }
    const expected = {
      error: { code: -32022, data: { supported: SUPPORTED, requested: '1999-01-01' } },
    }
    const old = await legacy(endpoint, 'ping', {}, unknown)
    t.match([old.status, old.json()], [400, expected])
    const _meta = { ...META, 'io.modelcontextprotocol/protocolVersion': '1999-01-01' }
    const fresh = await modern(endpoint, 'server/discover', { _meta }, unknown)
    t.match([fresh.status, fresh.json()], [400, { id: 'a-1', ...expected }])
  },
)

t.test('2026: what a result carries', async (t) => {
  const discovered = await modern(endpoint, 'server/discover')
  t.match(discovered.json(), {
    result: {
      resultType: 'complete',
      supportedVersions: SUPPORTED,
      capabilities: { tools: {}, resources: {} },
      instructions: /untrusted/,
      ttlMs: 300_000,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'gatehouse' } },
    },
  })
  for (const method of ['tools/list', 'resources/list', 'resources/templates/list']) {
    const { result } = (await modern(endpoint, method)).json<{ result: Json }>()
    const cached = { resultType: 'complete', cacheScope: 'private', ttlMs: Number }
    t.match(result, cached, method)
  }
  const notice = { 'MCP-Protocol-Version': MODERN }
  const response = await postRaw(endpoint, '{"jsonrpc":"2.0","id":1,"result":{}}', notice)
  t.equal(response.status, 400, 'nothing is ever asked of a client, so it has nothing to answer')
})

t.test('2026: headers must repeat the body, else 400 and -32020', async (t) => {
  const call = { name: 'list_providers', arguments: {} }
  type Row = readonly [method: string, params: object, headers: Record<string, string>]
  const cases: readonly Row[] = [
    ['tools/list', {}, { 'MCP-Protocol-Version': '2025-11-25' }],
    ['tools/list', {}, { 'Mcp-Method': 'tools/call' }],
    ['tools/call', call, { 'Mcp-Name': 'get_webhook_event' }],
    ['resources/read', { uri: 'x:y' }, { 'Mcp-Name': 'x:z' }],
    ['tools/call', call, { 'Mcp-Name': '=?base64?bGlzdF9wcm92aWRlcnM?=' }],
  ]
  for (const [method, params, headers] of cases) {
    const answer = await modern(endpoint, method, { ...params }, headers)
    const refused = [400, { id: 'a-1', error: { code: -32020 } }]
    t.match([answer.status, answer.json()], refused, `${method} ${JSON.stringify(headers)}`)
  }
  const encoded = `=?base64?${Buffer.from('list_providers').toString('base64')}?=`
  t.equal((await modern(endpoint, 'tools/call', call, { 'Mcp-Name': encoded })).status, 200)
})

t.test('2026: methods, names, cursors and _meta that are refused', async (t) => {
  const uri = 'gatehouse://events/0'
  const capabilities = 'io.modelcontextprotocol/clientCapabilities'
  const bare = { 'io.modelcontextprotocol/protocolVersion': MODERN, [capabilities]: {} }
  const cases: readonly (readonly [string, Record<string, unknown>, number, number])[] = [
    ['initialize', {}, 404, -32601],
    ['tools/list', { _meta: { ...bare, [capabilities]: undefined } }, 400, -32602],
    ['tools/list', { _meta: { [capabilities]: {} } }, 400, -32602],
    ['tools/list', { _meta: { ...META, [capabilities]: 'all' } }, 400, -32602],
    ['tools/call', { name: 7 }, 200, -32602],
    ['resources/read', { uri }, 200, -32602],
    ['tools/list', { cursor: 'abc' }, 200, -32602],
  ]
  for (const [method, params, status, code] of cases) {
    const answer = await modern(endpoint, method, params)
    const what = `${method} ${JSON.stringify(params)}`
    t.match([answer.status, answer.json()], [status, { id: 'a-1', error: { code } }], what)
  }
  t.equal((await modern(endpoint, 'tools/list', { _meta: bare })).status, 200, 'no clientInfo')
})

/** What both generations of the official client have in common, as far as it is used here. */
type Official = {
  listTools(): Promise<{ tools: readonly { name: string }[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<object>
  listResources(): Promise<{ resources: readonly { uri: string }[] }>
  listResourceTemplates(): Promise<{ resourceTemplates: readonly object[] }>
  readResource(resource: { uri: string }): Promise<{ contents: readonly object[] }>
  getServerVersion(): { name: string } | undefined
  getInstructions(): string | undefined
  close(): Promise<void>
}

const info = { name: 'gatehouse-test', version: '1.0.0' }
const init = ({ token }: Endpoint) => ({
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
})

const url = new URL(endpoint.url)
const send = () => store(base, 'lan')

/** Lists and calls every tool; the clients themselves validate structured content by its schema. */
async function useEverything(t: Test, client: Official) {
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
      const waiting = call('wait_for_webhook_event', { timeout_s: 55 }).finally(
        () => (over = true),
      )
      await until(async () => over || (await send(), over), 'the wait to end', 30_000)
      return waiting
    },
    get_webhook_stats: () => call('get_webhook_stats', { hours: 1 }),
    search_webhook_events: () => call('search_webhook_events', { text: '{', limit: 5 }),
    get_provider_health: () => call('get_provider_health', { provider: 'generic:lan' }),
    async replay_webhook_event() {
      const { length } = receiver.received
      const target_url = `${receiver.url}/replayed`
      const result = await call('replay_webhook_event', { id, target_url })
      t.equal(receiver.received.length, length + 1, 'the target got it once')
      return result
    },
  }
  function call(name: string, args: Record<string, unknown>) {
    return client.callTool({ name, arguments: args })
  }
  t.same(names, Object.keys(calls), 'every tool is called here')
  for (const name of names) {
    const result = await calls[name]?.()
    t.notMatch(result, { isError: true }, name)
    t.match(result, { structuredContent: {}, content: [{ type: 'text' }] }, name)
  }
  await t.rejects(call('rm_rf', {}), { code: -32602 })
  const { resources } = await client.listResources()
  const [{ uri } = { uri: '' }] = resources
  const { contents: recent } = await client.readResource({ uri })
  t.match(recent, [{ uri: 'gatehouse://events/recent', mimeType: 'application/json' }])
  const { resourceTemplates } = await client.listResourceTemplates()
  t.match(resourceTemplates, [{ uriTemplate: 'gatehouse://events/{id}/payload/{part}' }])
  const { contents } = await client.readResource({ uri: `gatehouse://events/${id}/payload/1` })
  t.match(contents, [{ text: '{}' }, { text: /untrusted/ }])
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

t.test('the 2.x client, without a handshake', async (t) => {
  const client = new Client2(info, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new Transport2(url, init(endpoint)))
  t.equal(client.getProtocolEra(), 'modern')
  await useEverything(t, client as Official)
})

t.test('401 without a token that is known, 403 with that of another endpoint', async (t) => {
  const other = await addEndpoint(base, 'other')
  const nowhere = `${base}/mcp/nobody`
  const ping = (to: string, headers: Record<string, string> = {}) => {
    const type = { 'Content-Type': 'application/json' }
    return request(to, { method: 'POST', headers: { ...type, ...headers }, body: PING })
  }
  const scheme = 'Bearer realm="gatehouse"'
  const { token } = endpoint
  const strangers: readonly (readonly [Record<string, string>, string])[] = [
    [{}, scheme],
    [{ Authorization: `Bearer ${secret('wrong')}` }, `${scheme}, error="invalid_token"`],
    [{ Authorization: `Basic ${token}` }, scheme],
    [{ 'X-Webhook-Token': token }, scheme],
    [{ Authorization: `Bearer ${await addProvider(base, 'ci')}` }, scheme],
  ]
  for (const [headers, challenge] of strangers) {
    const [here, gone] = [await ping(endpoint.url, headers), await ping(nowhere, headers)]
    t.same([here.status, gone.status], [401, 401])
    t.match(here.headers['www-authenticate'], challenge)
    const same = gone.text.replace('/nobody', '/agent')
    t.equal(same, here.text, 'strangers do not learn which endpoints there are')
  }
  const bearer = { Authorization: `bearer ${token}` }
  const known: readonly (readonly [string, number])[] = [
    [endpoint.url, 200],
    [other.url, 403],
    [nowhere, 403],
  ]
  for (const [to, status] of known) t.equal((await ping(to, bearer)).status, status, to)
  const inUrl = await ping(`${endpoint.url}?token=${encodeURIComponent(token)}`)
  t.equal(inUrl.status, 401, 'a token in the URL counts for nothing')
})

t.test('the settings page makes an endpoint and shows its token once', async (t) => {
  const make = (fields: Record<string, string>, headers = {}) =>
    postForm(base, '/settings/endpoints', fields, headers)
  const page = await make({ name: 'desk', allow_replay: 'on' })
  t.match(page.text, /^<section id="endpoints"/)
  const token = endpointToken(page)
  const shown = /id="endpoint-configuration"[^>]*><code>(.*?)<\/code>/s.exec(page.text)?.[1]
  t.same(JSON.parse((shown ?? '').replaceAll('&quot;', '"')), {
    mcpServers: {
      'gatehouse-desk': {
        type: 'http',
        url: `${base}/mcp/desk`,
        headers: { Authorization: `Bearer ${token}` },
      },
    },
  })
  const settings = async () => (await request(`${base}/settings`)).text
  const row = /id="card-of-desk"[\s\S]*?<dd>read and replay<\/dd>[\s\S]*?<dd>never<\/dd>/
  t.match(await settings(), row)
  t.notMatch(await settings(), token)
  t.equal((await legacy({ url: `${base}/mcp/desk`, token }, 'ping')).status, 200)
  const used = /id="card-of-desk"[\s\S]*?Last used<\/dt>\s*<dd><time/
  await until(async () => used.test(await settings()), 'the time of the last use')
  const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
  const whole = await make({ name: 'script' }, navigates)
  t.match(whole.text, /^<!doctype html>[\s\S]*id="endpoint-token"/, 'a page without script')
  endpointToken(whole)

  const state = async () => (await settings()).match(/id="card-of-/g)?.length
  const endpoints = '/settings/endpoints'
  await refuseAll(t, { service: 'hooks', base, state }, [
    [formCall(endpoints, { name: 'a/b' }), 422],
    [formCall(endpoints, { name: 'a'.repeat(65) }), 422],
    [formCall(endpoints, { name: 'desk' }), 409],
    [formCall(`${endpoints}/nobody/revoke`), 404],
  ])
  const typed = await make({ name: '<b>' }, navigates)
  t.match(typed.text, /aria-invalid="true"[^>]*value="&lt;b&gt;"/, 'what was typed stays')
})

t.test('all instances know and forget a token, of which the hash is kept', async (t) => {
  const second = await startServer(t, { services: ['hooks'], env })
  const made = await addEndpoint(base, 'shared')
  const there = { ...made, url: made.url.replace(base, second.hooks) }
  const status = async (at: Endpoint) => (await modern(at, 'tools/list')).status
  await until(async () => (await status(there)) === 200, 'the other instance to know the token')
  const rows = await postgres.query(
    env,
    `select length(token_hash) as bytes, strpos(to_jsonb(e)::text, $1) as found
       from hooks.endpoints e where name = 'shared'`,
    [made.token],
  )
  t.same(rows, [{ bytes: 32, found: 0 }])
  const page = await postForm(base, '/settings/endpoints/shared/revoke', {})
  t.notMatch(page.text, 'id="card-of-shared"')
  t.equal(await status(made), 401, 'at once')
  await until(async () => (await status(there)) === 401, 'the other instance to forget the token')
  const renewed = await addEndpoint(base, 'shared')
  t.same([await status(made), await status(renewed)], [401, 200], 'the old token stays dead')
})
