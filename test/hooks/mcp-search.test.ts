import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { countAnswers } from '../helpers/answers.ts'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint, callTool, errorOf } from '../helpers/mcp.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

/** What `list_webhook_events` answers, as far as it is looked at here. */
type Listed = { events: { id: number }[]; next_cursor: string | null }

const TOOL = 'list_webhook_events'

await onPostgres(t, 'search by a tool', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  await addProvider(base, 'other', { open: true })
  const endpoint = await addEndpoint(base, 'agent')
  const send = async (body: string, name = 'lan'): Promise<number> =>
    (await post(base, `generic/${name}`, body, { 'X-Event-Type': 'note' })).json<Ack>().id
  const list = async (args: Record<string, unknown>): Promise<Listed> =>
    (await callTool(endpoint, TOOL, args))['structuredContent'] as unknown as Listed
  const found = async (args: Record<string, unknown>): Promise<readonly number[]> =>
    (await list(args)).events.map(({ id }) => id)

  const first = await send('{"data":{"object":{"id":"evt_1"}}}')
  const second = await send('{"data":{"object":{"id":"evt_10","items":[{"sku":"ü"}]}}}')
  const other = await send('{"data":{"object":{"id":"evt_1"}}}', 'other')
  const plain = await send('evt_1, and 100% no JSON')

  await t.test('text and json mean what they mean in the log', async (t) => {
    t.same(await found({ text: 'evt_1' }), [plain, other, second, first])
    t.same(await found({ text: 'EVT_1' }), [], 'upper and lower case differ')
    t.same(await found({ text: '%' }), [plain], 'no character is a wildcard')
    t.same(await found({ text: '"ü"' }), [second])
    t.same(await found({ json: 'data.object.id=evt_1' }), [other, first])
    t.same(await found({ json: 'data.object.items.0.sku=ü' }), [second])
    t.same(await found({ json: 'data.object.id=evt' }), [], 'the whole value counts')
    t.same(await found({ text: '10', json: 'data.object.id=evt_10' }), [second])
    t.same(await found({ text: 'evt_1', provider: 'generic:other' }), [other])
    t.same(await found({ text: 'evt_1', since: other }), [plain, other])
    t.same(await found({ text: 'evt_1', event_type: 'none' }), [])
  })

  await t.test('pages of a search give every event once', async (t) => {
    const seen: number[] = []
    let cursor: string | null = null
    do {
      const page: Listed = await list({ text: 'evt_1', limit: 1, ...(cursor && { cursor }) })
      t.ok(page.events.length <= 1)
      seen.push(...page.events.map(({ id }) => id))
      cursor = page.next_cursor
    } while (cursor !== null)
    t.same(seen, [plain, other, second, first])
  })

  await t.test('what is no search is an invalid argument', async (t) => {
    const bad: readonly (readonly [Record<string, unknown>, RegExp])[] = [
      [{ json: 'data.object' }, /json must be path=value/],
      [{ json: 'a..b=1' }, /json must be path=value/],
      [{ json: '=1' }, /json must be path=value/],
      [{ text: '' }, /^text /],
      [{ json: '' }, /^json /],
      [{ text: 'x'.repeat(501) }, /^text /],
      [{ json: `a=${'x'.repeat(499)}` }, /^json /],
      [{ text: 1 }, /^text /],
    ]
    for (const [args, message] of bad) {
      t.match(errorOf(await callTool(endpoint, TOOL, args)), { code: 'invalid_argument', message })
    }
  })

  await t.test('a NUL character finds nothing or is an invalid argument', async (t) => {
    const nothing = [
      { provider: 'generic:lan\0' },
      { event_type: 'no\0te' },
      { text: '\0' },
      { text: 'evt\0' },
      { json: 'data.object.id=evt_1\0' },
      { provider: '\0', event_type: '\0', text: '\0', json: 'id=\0' },
    ]
    for (const args of nothing) {
      t.same(await list(args), { events: [], next_cursor: null }, JSON.stringify(args))
    }
    for (const args of [{ cursor: '\0' }, { since: '\0' }, { since: '1\0' }, { json: '\0=1' }]) {
      const { code } = errorOf(await callTool(endpoint, TOOL, args))
      t.equal(code, 'invalid_argument', JSON.stringify(args))
    }
    const wait = { provider: 'generic:\0', event_type: '\0', timeout_s: 1 }
    t.match(await callTool(endpoint, 'wait_for_webhook_event', wait), {
      structuredContent: { event: null },
    })
  })
})

t.test('a search ends with its client, and leaves its place to others', async (t) => {
  const [, server] = backends
  const { base, env } = await startHooks(t, server)
  const endpoint = await addEndpoint(base, 'agent')
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1 })
  t.teardown(() => sql.end())
  const params = { name: TOOL, arguments: { text: 'needle' } }
  const search = (): Promise<unknown> =>
    request(endpoint.url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${endpoint.token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      timeoutMs: 1_000,
    })
  const ended = (route: string, status: number): Promise<number> =>
    countAnswers(base, route, status)

  await sql.begin(async (tx) => {
    await tx`lock table hooks.events in access exclusive mode`
    // Until it is given up by the database, all others are behind it.
    const first = request(`${base}/log?text=needle`, { headers: { 'hx-request': 'true' } })
    const waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    await until(async () => (await server.query(env, waits)).length > 0, 'the first to wait')
    const leaving = await Promise.allSettled(Array.from({ length: 32 }, search))
    for (const { status } of leaving) t.equal(status, 'rejected')
    await until(
      async () => (await ended('/mcp/:endpoint', 499)) === 32 || (await ended('/log', 503)) > 0,
      'those who left to be out of the line',
    )
    t.equal(await ended('/log', 503), 0, 'before the first has an answer')
    const { code } = errorOf(await callTool(endpoint, TOOL, { limit: 0 }))
    t.equal(code, 'invalid_argument', 'and not rate_limited')
    t.equal((await first).status, 503)
  })
})
