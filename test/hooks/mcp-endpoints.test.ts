import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { metricOf } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint, callTool, endpointToken, errorOf, legacy, modern } from '../helpers/mcp.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, post, postForm, startHooks, tokenOf } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

/** Under this name reads of resources are counted. */
const READ = 'resources/read'

await onPostgres(t, 'endpoints and their tokens', async (t: Test, backend) => {
  const { base, server, env } = await startHooks(t, backend)
  const agent = await addEndpoint(base, 'agent')
  const other = await addEndpoint(base, 'other')
  const ping = (url: string, headers: Record<string, string> = {}) =>
    request(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    })

  await t.test(
    '401 without a token that is known, 403 with that of another endpoint',
    async (t) => {
      const nowhere = `${base}/mcp/nobody`
      const wrong = secret('wrong-endpoint-token')
      const scheme = 'Bearer realm="gatehouse"'
      const strangers: readonly (readonly [string, Record<string, string>, string])[] = [
        ['no token', {}, scheme],
        ['an empty one', { Authorization: 'Bearer ' }, `${scheme}, error="invalid_token"`],
        ['a wrong one', { Authorization: `Bearer ${wrong}` }, `${scheme}, error="invalid_token"`],
        ['half of it', { Authorization: `Bearer ${agent.token.slice(0, 20)}` }, scheme],
        ['more than it', { Authorization: `Bearer ${agent.token}x` }, scheme],
        ['another scheme', { Authorization: `Basic ${agent.token}` }, scheme],
        ['another header', { 'X-Webhook-Token': agent.token }, scheme],
      ]
      for (const [what, headers, challenge] of strangers) {
        const here = await ping(agent.url, headers)
        t.equal(here.status, 401, what)
        t.match(here.headers['www-authenticate'], challenge, what)
        t.match(here.json(), { type: 'about:blank', status: 401 }, what)
        const gone = await ping(nowhere, headers)
        t.equal(gone.status, 401, `${what}, where there is no endpoint`)
        t.same(
          { ...gone.json<object>(), instance: '' },
          { ...here.json<object>(), instance: '' },
          'strangers do not learn which endpoints there are',
        )
      }
      const withQuery = await ping(`${agent.url}?token=${encodeURIComponent(agent.token)}`)
      t.equal(withQuery.status, 401, 'a token in the URL counts for nothing')
      const bearer = { Authorization: `bearer ${agent.token}` }
      t.equal((await ping(agent.url, bearer)).status, 200, 'the scheme has no case')
      t.equal((await ping(other.url, bearer)).status, 403)
      t.equal((await ping(nowhere, bearer)).status, 403, 'no endpoint is like that of another')
      t.equal((await ping(`${base}/mcp/`, bearer)).status, 404)
      t.equal((await ping(`${base}/mcp/agent/x`, bearer)).status, 404)
    },
  )

  await t.test("a sender's token and an endpoint's are not mixed up", async (t) => {
    const page = await postForm(base, '/providers', { name: 'ci', trust_mode: 'token' })
    const bearer = { Authorization: `Bearer ${tokenOf(page)}` }
    t.equal((await ping(agent.url, bearer)).status, 401)
    await addProvider(base, 'agent')
    const { status } = await ping(`${base}/webhooks/generic/agent`, {
      Authorization: `Bearer ${agent.token}`,
    })
    t.equal(status, 403)
  })

  await t.test('the settings page makes an endpoint and shows its token once', async (t) => {
    const page = await postForm(base, '/settings/endpoints', { name: 'desk', allow_replay: 'on' })
    t.equal(page.status, 200)
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
    const again = await request(`${base}/settings`)
    t.match(
      again.text,
      /id="card-of-desk"[\s\S]*?<dd>read and replay<\/dd>[\s\S]*?<dd>never<\/dd>/,
    )
    t.notMatch(again.text, token)
    t.equal((await legacy({ url: `${base}/mcp/desk`, token }, 'ping')).status, 200)
    const plain = await postForm(
      base,
      '/settings/endpoints',
      { name: 'script' },
      { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' },
    )
    t.match(plain.text, /^<!doctype html>[\s\S]*id="endpoint-token"/, 'a page without script')
    endpointToken(plain)
  })

  await t.test('the form refuses what it can not take', async (t) => {
    const make = (fields: Record<string, string>, headers = {}) =>
      postForm(base, '/settings/endpoints', fields, headers)
    for (const name of ['', 'UPPER', '-x', 'a b', 'a/b', 'a'.repeat(65), '<b>'])
      t.equal((await make({ name })).status, 422, name)
    t.equal((await make({ name: 'agent' })).status, 409)
    const navigates = { 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'same-origin' }
    const page = await make({ name: '<b>', allow_replay: 'on' }, navigates)
    t.equal(page.status, 422)
    t.match(page.text, /aria-invalid="true"[^>]*value="&lt;b&gt;"/, 'what was typed stays')
    const foreign = await make({ name: 'x' }, { Origin: 'https://evil.example' })
    t.equal(foreign.status, 403)
    const revoke = await postForm(base, '/settings/endpoints/nobody/revoke', {})
    t.equal(revoke.status, 404)
  })

  await t.test('a use is noted', async () => {
    await until(async () => {
      const { text } = await request(`${base}/settings`)
      return /id="card-of-agent"[\s\S]*?Last used<\/dt>\s*<dd><time/.test(text)
    }, 'the time of the last use')
  })

  await t.test('a revoked token stops at once, and its name is free', async (t) => {
    t.equal((await modern(other, 'tools/list')).status, 200)
    const page = await postForm(base, '/settings/endpoints/other/revoke', {})
    t.equal(page.status, 200)
    t.notMatch(page.text, 'id="card-of-other"')
    t.equal((await modern(other, 'tools/list')).status, 401)
    const renewed = await addEndpoint(base, 'other')
    t.equal((await modern(other, 'tools/list')).status, 401, 'the old token stays dead')
    t.equal((await modern(renewed, 'tools/list')).status, 200)
  })

  await t.test('all instances know and forget a token', async (t) => {
    const second = await startServer(t, { services: ['hooks'], env })
    const made = await addEndpoint(base, 'shared')
    const there = { ...made, url: made.url.replace(base, second.hooks) }
    const status = async (): Promise<number> => (await modern(there, 'tools/list')).status
    await until(async () => (await status()) === 200, 'the other instance to know the token')
    await postForm(base, '/settings/endpoints/shared/revoke', {})
    await until(async () => (await status()) === 401, 'the other instance to forget the token')
  })

  await t.test('tokens outlive the server, and only their hashes are kept', async (t) => {
    await server.stop()
    const rows = await backend.query(
      env,
      `select length(token_hash) as bytes, strpos(to_jsonb(e)::text, $1) as found
         from hooks.endpoints e where name = 'agent'`,
      [agent.token],
    )
    t.same(rows, [{ bytes: 32, found: 0 }])
    const again = await startServer(t, { services: ['hooks'], env })
    const same = { ...agent, url: agent.url.replace(base, again.hooks) }
    t.match(await callTool(same, 'list_providers'), { structuredContent: {} })
  })
})

await onPostgres(t, 'calls are counted by tool and outcome', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  const endpoint = await addEndpoint(base, 'agent', { allow_replay: 'true' })
  await addProvider(base, 'lan', { open: true })
  const { id } = (await post(base, 'generic/lan', '{}')).json<Ack>()
  const [list, get, replay] = ['list_webhook_events', 'get_webhook_event', 'replay_webhook_event']
  type Row = readonly [tool: string, args: Record<string, unknown>, code: string | undefined]
  const calls: readonly Row[] = [
    [list, {}, undefined],
    [list, { limit: 0 }, 'invalid_argument'],
    [list, { cursor: 'x' }, 'invalid_argument'],
    [list, { verified: 'true' }, 'invalid_argument'],
    [get, { id }, undefined],
    [get, { id: 999_999 }, 'not_found'],
    ['list_providers', { all: true }, 'invalid_argument'],
    ['wait_for_webhook_event', { timeout_s: 56 }, 'invalid_argument'],
    [replay, { id, target_url: 'http://127.0.0.1:9/' }, 'replay_failed'],
  ]
  for (const [tool, args, code] of calls) {
    const { ok, error } = await counted(base, tool)
    const result = await callTool(endpoint, tool, args)
    t.equal(code && errorOf(result).code, code)
    const expected = code === undefined ? { ok: ok + 1, error } : { ok, error: error + 1 }
    t.same(await counted(base, tool), expected, `${tool} ${JSON.stringify(args)}`)
  }
})

t.test('calls that the database does not answer', async (t) => {
  const [, backend] = backends
  const { base, server, env } = await startHooks(t, backend)
  const endpoint = await addEndpoint(base, 'agent')
  const read = (): ReturnType<typeof modern> =>
    modern(endpoint, READ, { uri: 'gatehouse://events/recent' })
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1, onnotice: () => undefined })
  t.teardown(() => sql.end())

  await t.test('a resource is read within the bounds of calls', async (t) => {
    const reads: ReturnType<typeof modern>[] = []
    await sql.begin(async (tx) => {
      await tx`lock table hooks.events in access exclusive mode`
      for (let n = 0; n < 32; n++) reads.push(read())
      // They may arrive in any order: the one that finds no place is refused at once.
      reads.push(read())
      const busy = await Promise.race(reads)
      t.equal(busy.status, 503)
      t.match(busy.json(), { error: { code: -32603, message: /as many calls running as it may/ } })
      await until(async () => (await counted(base, READ)).error > 1, 'a read to be given up')
    })
    const answers = (await Promise.all(reads)).map(({ status, text }) => ({ status, text }))
    const away = answers.filter(({ text }) => text.includes('The database is out of reach'))
    t.ok(away.length > 0, 'a database that does not answer is said')
    t.same([...new Set(away.map(({ status }) => status))], [503])
    const good = answers.filter(({ status }) => status === 200).length
    t.same(await counted(base, READ), { ok: good, error: 33 - good })
  })

  await t.test('a failure is told without its reason', async (t) => {
    await backend.query(env, 'alter table hooks.events rename to events_away')
    const broken = await callTool(endpoint, 'list_webhook_events')
    t.match(JSON.stringify(broken), /internal/)
    t.notMatch(JSON.stringify(broken), /events_away|relation|select/, 'its reason is for the log')
    const unread = await read()
    t.equal(unread.status, 500)
    t.match(unread.json(), { id: 'a-1', error: { code: -32603, message: 'Internal error.' } })
    await until(
      () => server.logs().some((line) => line.includes('list_webhook_events')),
      'the reason in the log',
    )
  })
})

/** The calls of a tool, as /metrics counts them. */
async function counted(base: string, tool: string): Promise<{ ok: number; error: number }> {
  const { text } = await request(`${base}/metrics`)
  const of = (outcome: string): number => {
    const labels = `tool="${tool}",outcome="${outcome}"`
    return metricOf(text, `gatehouse_hooks_tool_calls_total{${labels}}`) ?? 0
  }
  return { ok: of('ok'), error: of('error') }
}
