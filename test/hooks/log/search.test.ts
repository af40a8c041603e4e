import { t } from 'tap'
import { allIn, countAnswers, request } from '../../helpers/http.ts'
import { backends, connectionTo, eachBackend } from '../../helpers/backends.ts'
import { addEndpoint, callTool, errorOf, type Endpoint } from '../../helpers/mcp.ts'
import type { Owner } from '../../helpers/owner.ts'
import type { Env } from '../../helpers/program.ts'
import { refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { startServer } from '../../helpers/server.ts'
import { addProvider, eventIds, post, postForm, type Bytes } from '../../helpers/hooks.ts'
import { until } from '../../helpers/until.ts'

const [embedded, server] = backends

const BODIES = {
  'first.type': '{"id":"evt_1","data":{"object":{"id":"obj_1","amount":12345678901234567890}}}',
  'second.type':
    '{"id":"evt_2","data":{"object":{"id":"obj_2","paid":true,"items":[{"sku":"a"},{"sku":"ü"}]}}}',
  'escaped.type': '{"data":{"object":{"id":"\\u006fbj_3"}},"text":"50% off \\u0000"}',
  'odd.type': '{"labels":{"app.name":"shop","a\\"b c":{"ß":1.10}},"big":9007199254740993}',
  'text.type': 'no JSON, but obj_1 stands in it',
  'bytes.type': Buffer.from([0x80, 0xff, 0x00, 0x6f, 0x62, 0x6a]),
  'case.type': 'XMLWORD of the École',
  'latin.type': Buffer.from('Xmlword of the caf\xe9', 'latin1'),
}

/** Starts a server that has received one event of each type; returns its address. */
async function startWithEvents(t: Owner, env: Env) {
  const { hooks: base } = await startServer(t, { env, services: ['hooks'] })
  await addProvider(base, 'search', { open: true })
  for (const [type, body] of Object.entries(BODIES)) await store(base, type, body)
  return base
}

async function store(base: string, type: string, body: Bytes) {
  await post(base, 'generic/search', body, { 'X-Event-Type': type })
}

/** What a browser sends with a request of a page of this site, over plain http. */
function own(base: string) {
  return { headers: { Referer: `${base}/log` } }
}

/** Types of the events on the page that a query of the log gives, newest first. */
async function typesFound(base: string, query: string) {
  const { text } = await request(`${base}/log?${query}`, { headers: { 'hx-request': 'true' } })
  return allIn(text, />\s*([a-z]+\.type)\s*</g)
}

await eachBackend(t, 'search', async (t, backend) => {
  const env = await backend.env(t)
  const base = await startWithEvents(t, env)
  const found = (query: string) => typesFound(base, query)

  await t.test('text in any case, and a member of the JSON by its path', async (t) => {
    const sku = encodeURIComponent('data.object.items.1.sku=ü')
    const cases: readonly (readonly [string, readonly string[]])[] = [
      [`text=${encodeURIComponent('"ü"')}`, ['second.type']],
      // No character is a wildcard.
      ['text=%25', ['escaped.type']],
      ['text=NO+json', ['text.type']],
      [`text=${encodeURIComponent('éCOLE')}`, ['case.type']],
      [`text=${encodeURIComponent('ecole')}`, []],
      // Of a payload that is not UTF-8, or has a NUL, the bytes are compared.
      ['text=Xmlword&event_type=latin.type', ['latin.type']],
      ['text=xmlword&event_type=latin.type', []],
      ['text=obj&event_type=bytes.type', ['bytes.type']],
      ['text=OBJ&event_type=bytes.type', []],
      ['json=data.object.amount=12345678901234567890', ['first.type']],
      ['json=data.object.paid=true', ['second.type']],
      [`json=${sku}`, ['second.type']],
      // Other characters than letters and digits have a backslash.
      [`json=${encodeURIComponent(String.raw`labels.app\.name=shop`)}`, ['odd.type']],
      [`json=${encodeURIComponent(String.raw`labels.a\"b\ c.ß=1.10`)}`, ['odd.type']],
      [`json=${encodeURIComponent(String.raw`*.app\.name=SHOP`)}`, ['odd.type']],
      [`json=${encodeURIComponent(String.raw`*.a\"b\ c=x`)}`, []],
      ['json=labels.app.name=shop', []],
      ['json=big=9007199254740993', ['odd.type']],
      ['json=big=9007199254740992', []],
      // The whole value counts.
      ['json=data.object.id=obj', []],
      ['text=obj_1&event_type=first.type', ['first.type']],
    ]
    for (const [query, types] of cases) t.same(await found(query), types, query)
  })

  // All else is the same on both.
  if (backend === embedded) return

  await t.test('payloads with too many brackets or bytes have no member', async (t) => {
    const send = (type: string, inside: string) => store(base, type, `{"deep":"1","in":${inside}}`)
    for (const depth of [100_000, 1_000_000, 5_000]) {
      await send('deep.type', '['.repeat(depth) + ']'.repeat(depth))
    }
    await send('wide.type', `[${'{},'.repeat(90_000)}0]`)
    await send('long.type', `[${'1,'.repeat(600_000)}0]`)
    t.same(await found('json=deep=1'), ['wide.type', 'deep.type'], 'two of them')
  })

  await t.test('only the first MiB of a payload is compared with a text', async (t) => {
    // A character stands across the end of the first MiB.
    const body = `${'a'.repeat(1024 * 1024 - 8)}Inside€, outside${'a'.repeat(1024 * 1024)}`
    await store(base, 'huge.type', body)
    t.same(await found('text=inside'), ['huge.type'])
    t.same(await found(`text=${encodeURIComponent('inside€')}`), [])
    t.same(await found('text=outside'), [])
    // The most expensive texts: everywhere they differ only in their last or first byte.
    for (const text of [`${'a'.repeat(499)}b`, `B${'a'.repeat(499)}`]) {
      const worst = await request(`${base}/log?text=${text}`, own(base))
      t.equal(worst.status, 200)
      t.notMatch(worst.text, /<tbody.*huge\.type/s)
    }
  })

  await t.test('refused searches', async (t) => {
    const { host } = new URL(base)
    const get = (query: string, headers = {}) => ({ call: `GET /log?${query}`, headers })
    const odd = ['a..b=1', String.raw`a\=1`, 'a b=1', String.raw`*.a.b\.c=1`, '.a=1']
    const members = odd.map((text) => `json=${encodeURIComponent(text)}`)
    const invalid = ['json=data.object', ...members, `text=${'x'.repeat(501)}`]
    const unseen = ['image', 'empty'].flatMap((dest): readonly Refusal[] => [
      [get('text=obj_1', fetchedBy('cross-site', dest)), 403],
      [get('json=id=evt_2', fetchedBy('same-site', dest)), 403],
    ])
    // Without Sec-Fetch-Site, over plain http, what a browser asks must come from a page of this
    // site. A page can leave out Referer and Origin.
    const evil = 'http://evil.example/'
    const elsewhere = [evil, `${evil}?${host}`, host, 'http://127.0.0.1:1/log']
    const foreign = [
      { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0' },
      { 'User-Agent': 'a TV', 'Accept-Language': 'de' },
      { Origin: 'null' },
      ...elsewhere.map((Referer) => ({ Referer })),
    ]
    const unknown = [
      '/log?',
      '/log?rejected=1&',
      '/api/v1/events?',
      '/api/v1/events/export?',
    ].flatMap((path) =>
      foreign.map((headers): Refusal => [{ call: `GET ${path}text=obj_1`, headers }, 403]),
    )
    const htmx = { 'HX-Request': 'true', ...fetchedBy('cross-site', 'empty') }
    await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
      ...invalid.map((query): Refusal => [get(query), 400]),
      ...unseen,
      ...unknown,
      [{ call: 'GET /replays/new?text=obj_1', headers: foreign[0] ?? {} }, 403],
      [get('text=obj_1', htmx), 403],
    ])
  })

  await t.test('searches of a page of this site, links that are followed, programs', async (t) => {
    const { headers: ours } = own(base)
    const old = { 'User-Agent': 'Mozilla/5.0 (old)', 'Accept-Language': 'en', ...ours }
    for (const [what, query, headers] of [
      ['a part of our page', 'text=obj_1', fetchedBy('same-origin', 'empty')],
      ['a link', 'text=obj_1', fetchedBy('cross-site', 'document')],
      ['the address bar', 'text=obj_1', fetchedBy('none', 'document')],
      ['our page', 'rejected=1&text=obj_1', ours],
      ['htmx', 'rejected=1&text=obj_1', { 'HX-Request': 'true' }],
      ['our page in an old browser', 'text=obj_1', old],
      ['the log without a search', 'provider=chat', {}],
    ] as const) {
      const { status } = await request(`${base}/log?${query}`, { headers })
      t.equal(status, 200, what)
    }
    for (const headers of [
      {},
      { 'User-Agent': 'curl/8.14.1', Accept: '*/*' },
      // Node's own fetch.
      { 'User-Agent': 'node', 'Accept-Language': '*', 'Sec-Fetch-Mode': 'cors' },
    ]) {
      for (const path of ['/log', '/api/v1/events', '/api/v1/events/export', '/replays/new']) {
        const { status } = await request(`${base}${path}?text=obj_1`, { headers })
        t.equal(status, 200, `${path}: ${headers['User-Agent'] ?? 'no headers'}`)
      }
    }
  })
})

/** The headers in which a browser names the site and the kind of a load. */
function fetchedBy(site: string, dest: string) {
  return { 'Sec-Fetch-Site': site, 'Sec-Fetch-Dest': dest }
}

t.test('a search by JSON where PostgreSQL works in parallel', async (t) => {
  const env = await server.env(t)
  // The setting had another name before PostgreSQL 16.
  await server.query(
    env,
    `do $$ declare name text; begin
       select s.name into name from pg_settings s
        where s.name in ('force_parallel_mode', 'debug_parallel_query');
       execute format('alter database %I set %I = on', current_database(), name);
     end $$`,
  )
  const base = await startWithEvents(t, env)
  t.same(await typesFound(base, 'json=data.object.id=obj_1'), ['first.type'])
})

t.test('a search reads only the events that its filters leave', async (t) => {
  const env = await server.env(t)
  await server.query(
    env,
    `insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
     select case when n % 1000 = 7 then 'generic:quiet' else 'generic:loud' end,
            case when n % 2000 = 7 then 'rare' else 'usual' end,
            3, '[]', 'needle', now() - interval '1 day' + n * interval '1 s'
       from generate_series(1, 40000) n`,
  )
  await server.query(env, 'analyze hooks.events')
  // Retention reads rows, too.
  await server.query(env, 'update hooks.settings set retention_max_rows = 0')

  await server.query(env, 'select pg_stat_reset()')
  const { hooks, stop } = await startServer(t, { env, services: ['hooks'] })
  const quiet = Array.from({ length: 40 }, (_, n) => 39_007 - 1_000 * n)
  const rare = quiet.filter((id) => id % 2_000 === 7)

  const newest = Array.from({ length: 20 }, (_, n) => 40_000 - n)
  for (const [query, found] of [
    ['provider=generic:quiet&event_type=rare', rare],
    ['provider=generic:loud&event_type=rare', []],
    ['limit=200&provider=generic:quiet&text=needle', quiet],
    // What all events have is found by the first step, which is short.
    ['text=needle&limit=20', newest],
  ] as const) {
    const { text } = await request(`${hooks}/log?${query}`, own(hooks))
    const ids = allIn(text, /data-id="(\d+)"/g).map(Number)
    t.same(ids, found, query)
  }
  // Nor does the list of providers read the log: three of them never had an event.
  t.equal((await request(`${hooks}/api/v1/providers`)).status, 200)
  // Sessions pass their figures on when they end.
  await stop()
  const reads = `select (seq_tup_read + idx_tup_fetch)::int as n from pg_stat_user_tables
                  where schemaname = 'hooks' and relname = 'events'`
  const rows = async () => Number((await server.query(env, reads))[0]?.['n'])
  const read = await until(async () => (await rows()) >= 80 && rows(), 'the figures')
  t.ok(read < 4_000, `${read} rows were read`)
})

t.test('searches wait for a slot', async (t) => {
  const env = await server.env(t)
  const base = await startWithEvents(t, env)
  const endpoint = await addEndpoint(base, 'agent')
  const sql = connectionTo(t, env)
  // By the API: its search is the first that it asks the database for.
  const search = (query: string, signal?: AbortSignal) => {
    const headers = { 'hx-request': 'true' }
    return request(`${base}/api/v1/events?${query}`, { headers, timeoutMs: 30_000, signal })
  }
  const waitsForLock = async () => {
    const waits = `select 1 from pg_stat_activity
                    where wait_event_type = 'Lock' and datname = current_database()`
    return (await server.query(env, waits)).length > 0
  }

  await t.test('for 5 s at most; a client that leaves frees its place', async (t) => {
    const list = { name: 'list_webhook_events', arguments: { text: 'obj_1' } }
    await sql.begin(async (tx) => {
      await tx`lock table hooks.events in access exclusive mode`
      // The database ends the first one after 5 s. By then the others have waited as long.
      const first = search('text=obj_1')
      await until(waitsForLock, 'the first to begin')
      const waiting = [first, ...Array.from({ length: 7 }, () => search('text=obj_1'))]
      const calls = [1, 2, 3].map(() => callTool(endpoint, list.name, list.arguments))
      const leave = new AbortController()
      // With the three above they are as many calls as an endpoint may have.
      const leaving = [
        ...Array.from({ length: 8 }, () => search('text=obj_1', leave.signal)),
        ...Array.from({ length: 29 }, () => leavingCall(endpoint, list, leave.signal)),
      ]
      const further = async () => errorOf(await callTool(endpoint, list.name, { limit: 0 })).code
      await until(async () => (await further()) === 'rate_limited', 'all of them to arrive')
      leave.abort()
      for (const { status } of await Promise.allSettled(leaving)) t.equal(status, 'rejected')
      const left = async () =>
        (await countAnswers(base, '/api/v1/events', 499)) === 8 &&
        (await countAnswers(base, '/mcp/:endpoint', 499)) === 29
      await until(left, 'the disconnected clients to be counted')
      t.equal(await countAnswers(base, '/api/v1/events', 503), 0, 'before the first has an answer')
      t.equal(await further(), 'invalid_argument', 'and not rate_limited')

      const answers = await Promise.all(waiting)
      for (const { status } of answers) t.equal(status, 503)
      const late = answers.find(({ text }) => text.includes('Too many searches at once'))
      t.match(late?.headers, { 'retry-after': '2' }, 'a search without a slot gets the reason')
      const errors = (await Promise.all(calls)).map(errorOf)
      t.match(
        errors.find((error) => error.code === 'rate_limited'),
        { message: 'Too many searches at once; try again shortly.' },
      )
    })
    t.equal((await search('text=obj_1')).status, 200, 'the queue goes on')
  })

  await t.test('a search that its token ends is not at the end of the log', async (t) => {
    const brief = await addEndpoint(base, 'brief')
    const ended = await sql.begin(async (tx) => {
      await tx`lock table hooks.events in access exclusive mode`
      const first = search('text=obj_1')
      await until(waitsForLock, 'the first to begin')
      const tools = ['list_webhook_events', 'search_webhook_events']
      const calls = tools.map((tool) => callTool(brief, tool, { text: 'obj_1' }))
      // The answer shows that the two before it have arrived.
      await request(`${base}/favicon.ico`)
      await postForm(base, '/settings/endpoints/brief/revoke', {})
      const results = await Promise.all(calls)
      await first
      return results
    })
    for (const result of ended) {
      const page = result['structuredContent'] as unknown as { next_cursor: string }
      t.match(page, { events: [], next_cursor: String })
      const args = { text: 'obj_1', cursor: page.next_cursor }
      const rest = await callTool(endpoint, 'list_webhook_events', args)
      t.match(rest, { structuredContent: { events: [{}, {}], next_cursor: null } })
    }
  })
})

/** Calls a tool and disconnects at the signal. */
function leavingCall({ url, token }: Endpoint, params: object, signal: AbortSignal) {
  return request(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    signal,
  })
}
