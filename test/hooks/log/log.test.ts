import { get, type IncomingMessage } from 'node:http'
import { t } from 'tap'
import { apiOf } from '../../helpers/api.ts'
import { postgres } from '../../helpers/backends.ts'
import {
  accepted,
  SIGNED_ENV,
  addProvider,
  deliver,
  eventIds,
  plain,
  store,
  type Ack,
  type Fields,
} from '../../helpers/hooks.ts'
import { allIn, request } from '../../helpers/http.ts'
import { refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { startServer } from '../../helpers/server.ts'
import { until } from '../../helpers/until.ts'

type Event = { id: number; provider: string; event_type: string | null; received_at: Date }
type Ids = readonly number[]

// Four events that get other times later; of the others five share each instant.
const SEED = `
insert into hooks.events (provider, trust, headers, payload, received_at)
select 'generic:days', 3, '[]', 'x', now() - interval '1 hour' from generate_series(1, 4);
insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
select (array['code_host', 'generic:ci', 'generic:cd'])[1 + n % 3],
       (array['push', 'deploy', null, 'push'])[1 + n % 4],
       3, '[]', 'x', date_trunc('second', now()) - ((60 - n) / 5) * interval '1 minute'
  from generate_series(1, 60) as n;
insert into hooks.event_types
select distinct provider, event_type from hooks.events where event_type is not null`
const STORED = `select id::int, provider, event_type, received_at from hooks.events
                 order by received_at desc, id desc`
const FRAGMENT = { 'HX-Request': 'true' }

const env = { ...SIGNED_ENV, ...(await postgres.env(t)) }
const query = postgres.query.bind(undefined, env)
await query(SEED)
const stored = (await query(STORED)) as readonly Event[]
const { hooks: base } = await startServer(t, { services: ['hooks'], env })
const api = apiOf(base)

const send = (name: string, type: string, body: string | Uint8Array = '{}', headers = {}) =>
  store(base, name, body, { 'X-Event-Type': type, ...headers })

/** The rows of the log, with their text and the query of the next page. */
async function log(query: string) {
  const answer = await request(`${base}/log?${query}`, { headers: FRAGMENT })
  if (answer.status !== 200) throw new Error(`GET /log?${query} answered ${answer.status}`)
  const ids = allIn(answer.text, /data-id="(\d+)"/g).map(Number)
  const next = /href="\/log\?([^"]*cursor=[^"]*)"/.exec(answer.text)?.[1]
  return { ...answer, ids, next: next?.replaceAll('&amp;', '&') }
}

/** Which of these events the log lists. */
async function listed(query: string, own: Ids) {
  return (await log(`limit=200&${query}`)).ids.filter((id) => own.includes(id))
}

const queryOf = (fields: Fields) => new URLSearchParams(fields).toString()

await t.test('newest first, ids decide between equal times', async (t) => {
  const all = stored.map(({ id }) => id)
  const first = await log('')
  t.same(first.ids, all.slice(0, 50), 'fifty are the default')
  const second = await log(String(first.next))
  t.same([second.ids, second.next], [all.slice(50), undefined], 'the last page leads nowhere')
  const exact = await log('limit=64')
  t.same([exact.ids, exact.next], [all, undefined], 'exactly full is the last page')
  for (const { headers } of [await request(`${base}/log`), exact]) {
    t.match(headers.vary, /HX-Request/i, 'a cache must not take one for the other')
  }
  for (const kind of ['', 'rejected=1&']) {
    const cursor = Buffer.from('[1]').toString('base64url')
    const { text } = await request(`${base}/log?limit=5&${kind}cursor=${cursor}`)
    t.match(text, 'Nothing older is kept.', kind)
  }
})

await t.test('filters by provider, type and time', async (t) => {
  const middle = stored[29]
  if (middle === undefined) throw new Error('nothing was stored, expected 64 events')
  const at = middle.received_at.toISOString()
  // The same instant as a clock two hours east of Greenwich shows it.
  const east = new Date(middle.received_at.getTime() + 7_200_000).toISOString()
  const since = (event: Event) => event.received_at >= middle.received_at
  const cases: readonly (readonly [string, (event: Event) => boolean])[] = [
    ['event_type=push%00', () => false],
    [
      'provider=code_host&event_type=push',
      (e) => e.provider === 'code_host' && e.event_type === 'push',
    ],
    [`since=${middle.id}`, ({ id }) => id >= middle.id],
    [`since=${at.slice(0, 19)}`, since],
    [`since=${encodeURIComponent(east.replace('Z', '+02:00'))}`, since],
    [`above=${middle.id}`, ({ id }) => id > middle.id],
    ['provider=&event_type=&since=&cursor=', () => true],
    ['since=9223372036854775807', () => false],
  ]
  for (const [query, passes] of cases) {
    const expected = stored.filter(passes).map(({ id }) => id)
    t.same((await log(`limit=200&${query}`)).ids, expected, query)
  }
})

await t.test('wildcards of types, ends of time, headers and members', async (t) => {
  for (const name of ['shop', 'other']) await addProvider(base, name, { open: true })
  const paid = await send('shop', 'invoice.paid', '{"id":"i-1","customer":{"id":"c-1"}}')
  const failed = await send('shop', 'invoice.failed', '{"id":"i-2","customer":{"id":"c-1"}}')
  const draft = await send('other', 'Invoice.Draft', '{}', { 'X-One': 'Yes=1' })
  const order = await send('shop', 'order_failed.failed', '{}', { 'x-one': 'no' })
  const lower = await send('shop', 'push')
  const upper = await send('other', 'Push')
  const bare = await store(base, 'shop')
  const signed = await deliver(base, 'code_host', '{"a":1}', { 'X-CodeHost-Event': 'ping' })
  const { id: ping, received_at } = signed.json<Ack>()
  const all = [ping, bare, upper, lower, order, draft, failed, paid]
  const json = (members: string) => `json=${encodeURIComponent(members)}`
  const cases: readonly (readonly [string, Ids])[] = [
    ['event_type=INVOICE.*', [draft, failed, paid]],
    ['event_type=*.failed', [order, failed]],
    ['event_type=invoice.*&provider=generic:other', [draft]],
    // A type that exists is meant to the letter, any other in any case.
    ['event_type=push', [lower]],
    ['event_type=Push', [upper]],
    ['event_type=PUSH', [upper, lower]],
    ['event_type=*', all],
    ['event_type=invoice', []],
    ['event_type=order_*', [order]],
    ['event_type=%5C*', []],
    [`since=${failed}&until=${draft}`, [draft, failed]],
    [`until=${received_at}`, all.slice(1)],
    ['until=1h', []],
    [`until=${upper}&event_type=*push`, [upper, lower]],
    [`until=${upper}&text=i-`, [failed, paid]],
    ['verified=true', [ping]],
    ['verified=false', all.slice(1)],
    ['header=X-One', [order, draft]],
    ['header=x-one=Yes=1', [draft]],
    ['header=x-one=yes=1', []],
    ['header=x-codehost-signature-256=%C2%ABredacted%C2%BB', [ping]],
    [json('customer.id=c-1\n\n id=i-1 \n'), [paid]],
    [json('id=i-2\r\ncustomer.id=c-1'), [failed]],
    ['verified=false&event_type=invoice.*&header=x-one', [draft]],
    [`${json('customer.id=c-1\nid=i-1')}&event_type=*.PAID&since=1h`, [paid]],
  ]
  for (const [query, ids] of cases) t.same(await listed(query, all), ids, query)
  const first = await log(`limit=1&event_type=invoice.*&until=${failed}`)
  const second = await log(String(first.next))
  t.same([first.ids, second.ids], [[failed], [paid]], 'the next page has the filters')

  const filter = { event_type: 'invoice.*', verified: 'false', until: failed, dry_run: true }
  const job = await api('POST', '/events/replay', filter)
  t.match(job.json, { count: 2, highest_id: failed }, 'replay jobs')
})

await t.test('the page: what there is, what is set, and how to take it away', async (t) => {
  const { text } = await request(`${base}/log`)
  t.match(text, /<datalist id="log-types">.*<option value="type:invoice.paid">/s)
  t.match(text, '<option value="1h">Last hour</option>')
  t.match(text, 'href="/log/export"')
  const headers = { Referer: `${base}/log` }
  const query = 'provider=generic%3Ashop&event_type=invoice.*&json=id%3Di-1'
  const page = (await request(`${base}/log?${query}&limit=5`, { headers })).text
  const gone = (await request(`${base}/log?provider=generic:gone`)).text
  t.match(gone, /<option value="generic:gone" selected\s*>generic:gone</, 'it stays chosen')
  for (const [verified, label, look] of [
    ['true', 'verified', 'verified'],
    ['false', 'unchecked', 'open'],
  ] as const) {
    const badge = new RegExp(`class="badge ${look}"[^>]*>\\s*${label}\\s*</span`)
    t.match((await log(`verified=${verified}`)).text, badge)
  }
  t.match(page, /<option value="generic:shop" selected>/)
  t.match(page, `href="/log/export?${query.replaceAll('&', '&amp;')}"`)
})

await t.test('filters as words', async (t) => {
  await addProvider(base, 'words', { open: true })
  const invoice = (customer_name: string) =>
    JSON.stringify({ data: { object: { customer_name, note: 'two words' } } })
  const globex = await send('words', 'invoice.paid', invoice('Globex'))
  const initech = await send('words', 'invoice.open', invoice('Initech'))
  const order = await send('words', 'order.paid', '{"customer":"globex","n":1}')
  const text = await send('words', 'note', 'https://a.test/x says hello')
  const all = [text, order, initech, globex]
  const rows: readonly (readonly [string, Ids])[] = [
    ['', all],
    ['customer:Globex', [order, globex]],
    ['json:n=1', [order]],
    ['note:"two words" type:*.open', [initech]],
    ['https://a.test/x', [text]],
    [`since:${initech} until:${order}`, [order, initech]],
    ['header:x-event-type=note', [text]],
    // Still being typed.
    ['type:', all],
    ['type:note customer:', [text]],
  ]
  for (const [q, ids] of rows) t.same(await listed(queryOf({ q }), all), ids, q)

  const fields: readonly (readonly [Fields, string])[] = [
    [{ event_type: 'a b', since: '24h' }, 'type:"a b" since:24h'],
    [{ json: 'a.b=1\n*.c=2\nd=3' }, 'a.b:1 c:2 json:d=3'],
    [{ text: 'type:x' }, '"type:x"'],
    [{ q: 'b  a type:x' }, 'type:x b a'],
  ]
  for (const [filter, q] of fields) {
    const headers = { 'Sec-Fetch-Site': 'same-origin' }
    const page = await request(`${base}/log?${queryOf(filter)}`, { headers })
    const value = /id="filter-q"[^>]*value="([^"]*)"/.exec(page.text)?.[1] ?? ''
    t.equal(plain(value), q, 'the page has the words of any address')
  }
})

await t.test('days of a zone, and the counts of events', async (t) => {
  const own = 'provider=generic:days'
  const [d, c, b, a] = (await log(own)).ids
  // The day on which the clocks go forward has 23 hours.
  await query(
    `update hooks.events set received_at = (array['2026-03-28T22:59:59Z', '2026-03-28T23:00:00Z',
            '2026-03-29T21:59:59Z', '2026-03-29T22:00:00Z']::timestamptz[])[1 + id - $1]
      where provider = 'generic:days'`,
    [a ?? 0],
  )
  const days = async (fields: Fields) => (await log(`${own}&${queryOf(fields)}`)).ids
  const day = { when: 'days', from: '2026-03-29', to: '2026-03-29' }
  const zone = 'Europe/Berlin'
  t.same(await days({ ...day, zone }), [c, b])
  t.same(await days(day), [d, c], 'of UTC without a zone')
  t.same(await days({ when: 'days', from: '2026-03-30', zone }), [d])
  t.same(await days({ when: 'days', to: '2026-03-28', zone }), [a])
  t.same(await days({ when: '24h' }), [])
  t.match((await log(`${own}&limit=2`)).text, '>4 events<', 'those of later pages are counted')
  t.match((await log('limit=1&q=Initech')).text, '>1 event<')
  const bars = [...(await log(own)).text.matchAll(/<title>.*?: (\d+)</g)]
  const sum = bars.reduce((sum, [, count]) => sum + Number(count), 0)
  t.equal(sum, 4, 'the bars count them all')
})

await t.test('what is refused', async (t) => {
  const cursor = (value: unknown) =>
    `cursor=${Buffer.from(JSON.stringify(value)).toString('base64url')}`
  const bad: Fields = {
    limit: '0 201 x 1.5 -1 1e2 0x10',
    since:
      'yesterday 1w h Today -5 1.5 0000-01-01 2026-02-30 2026-13-01T00:00:00Z ' +
      '2026-02-31T00:00:00Z 9999-12-31T23:59:59-12:00 9223372036854775808',
    until: 'yesterday 2026-02-30 1x -1 9223372036854775808',
    above: 'x -1 1.5 %00',
    open: 'x -1 1.5 %00',
    verified: 'yes 1 TRUE',
    header: `=x a%20b %20=1 x=${'y'.repeat(500)}`,
    json: `a=1%0Ab a%0Ab=1 a=${'1'.repeat(500)}`,
    cursor: 'zzz %3Cb%3E',
  }
  const queries = Object.entries(bad).flatMap(([field, values]) =>
    values.split(' ').map((value) => `${field}=${value}`),
  )
  queries.push(cursor({}), cursor([]), cursor(['x']), cursor([1, 1]))
  const invalid = (path: string, query: string): Refusal => {
    const field = new RegExp(`\\b${query.split('=')[0]}\\b`)
    return [`GET ${path}?${query}`, 400, undefined, field]
  }
  const words: readonly (readonly [Fields, RegExp])[] = [
    [{ q: 'since:yesterday' }, /since must be/],
    [{ q: 'verified:maybe' }, /verified must be true or false/],
    [{ when: 'soon' }, /when must be one of/],
    [{ when: 'today', zone: 'Mars/Crater' }, /zone must be a time zone/],
    [{ when: 'days', from: '2026-02-30' }, /from must be a day/],
    [{ when: 'days', to: 'x' }, /to must be a day/],
  ]
  const replay = (body: object) => ({ call: 'POST /api/v1/events/replay', body })
  const once = /^\w+ may be given once\.?/
  const elsewhere = (call: string): Refusal => [
    { call, headers: { Referer: 'http://evil.example/' } },
    403,
    undefined,
    /another site may not search/,
  ]
  const wrong = { authorization: 'Bearer wrong' }
  await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
    ...queries.map((query) => invalid('/log', query)),
    ...['/api/v1/events', '/api/v1/events/export', '/log/export'].flatMap((path) =>
      ['verified=1', 'header==x', 'until=x', 'since=x', 'json=x'].map((query) =>
        invalid(path, query),
      ),
    ),
    ...words.map(([query, text]): Refusal => [`GET /log?${queryOf(query)}`, 400, undefined, text]),
    invalid('/log', 'cursor=zzz&rejected=1'),
    invalid('/log', 'limit=0&rejected=1'),
    ['GET /log?limit=5&limit=6', 400, undefined, once],
    ['GET /api/v1/events?text=a&text=b', 400, undefined, once],
    ['GET /events?provider=a&provider=b', 400, undefined, once],
    ['GET /log/export?since=1&since=2', 400, undefined, once],
    // What is in payloads and headers is searched for by no page of another site.
    elsewhere('GET /log?header=x-one'),
    elsewhere('GET /api/v1/events?header=x-one'),
    elsewhere('GET /log/export?json=a%3D1'),
    elsewhere('GET /api/v1/events/export?text=x'),
    [{ call: 'GET /api/v1/events/export', headers: wrong }, 401],
    [{ call: 'GET /log/export', headers: { host: 'evil.example' } }, 403],
    ['POST /log/export', 405],
    [replay({ since: '1h', dry_run: true }), 400, /since/],
    [replay({ until: 'today', dry_run: true }), 400, /until/],
  ])
})

await t.test('a sender that invents a type for each event', async (t) => {
  for (const name of ['many', 'few']) await addProvider(base, name, { open: true })
  const known = `select provider, count(*)::int as n from hooks.event_types
                  where provider in ('generic:many', 'generic:few') group by 1 order by 2`
  await query(`insert into hooks.event_types (provider, event_type)
     select 'generic:many', 'made.up.' || n from generate_series(1, 498) n`)
  const made: number[] = []
  for (let n = 499; n <= 502; n++) made.unshift(await send('many', `made.up.${n}`))
  await send('few', 'usual')
  const kept = [
    { provider: 'generic:few', n: 1 },
    { provider: 'generic:many', n: 500 },
  ]
  t.same(await query(known), kept, 'so many are kept, and others not concerned')
  t.same((await log('event_type=made.up.*')).ids, made, 'and all are found')
  const [newest] = made
  t.same((await log('event_type=made.up.502')).ids, [newest], 'also one whose type is not kept')
})

await t.test('an export has a line for each event, as the API gives it', async (t) => {
  const exported = async (path: string) => {
    const { text } = await request(base + path, { headers: FRAGMENT })
    t.ok(text === '' || text.endsWith('\n'))
    const lines = text.split('\n').slice(0, -1)
    return lines.map((line): { id: number } => JSON.parse(line))
  }
  const first = await send('shop', 'order.made', '{"text":"line\\nbreak"}')
  const binary = await send('shop', 'bytes', Buffer.from([0xff, 0x00, 0x0a]))
  const signed = await accepted(deliver(base, 'code_host', '{"b":1}'))
  const ids = [signed, binary, first]
  const events = await Promise.all(ids.map(async (id) => (await api('GET', `/events/${id}`)).json))
  t.same(await exported(`/log/export?since=${first}`), events)
  t.same(await exported(`/api/v1/events/export?since=${first}&text=line`), [events[2]])
  t.same(await exported('/log/export?event_type=nothing'), [])
  const head = await request(`${base}/log/export`, { method: 'HEAD' })
  t.match(head, { status: 200, text: '' })
  t.match(head.headers, {
    'content-type': 'application/x-ndjson',
    'content-disposition': 'attachment; filename="events.ndjson"',
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
  })

  await query(`insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:pages', 3, '[]', convert_to(repeat('x', 20000), 'UTF8'), now()
       from generate_series(1, 250)`)
  for (const path of ['/log/export?limit=3', '/api/v1/events/export?text=xx']) {
    const found = (await exported(`${path}&provider=generic:pages`)).map(({ id }) => id)
    t.equal(found.length, 250, 'all that the filters choose, over many pages')
    const newestFirst = found.toSorted((a, b) => b - a)
    t.same(found, newestFirst)
  }
})

// Last: it takes a table away.
await t.test('an export that breaks off while its client reads slowly has no end', async (t) => {
  const rows = 60
  await query(`insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:large', 3, '[]', convert_to(repeat('x', 1000000), 'UTF8'), now()
       from generate_series(1, ${rows})`)
  const opened = Promise.withResolvers<IncomingMessage>()
  get(`${base}/log/export?provider=generic:large`, { agent: false }, opened.resolve)
  const incoming = await opened.promise
  t.equal(incoming.statusCode, 200)
  // Nothing is read here, so the server waits, and what is still in the table can be taken away.
  await query('alter table hooks.events rename to events_away')
  let bytes = 0
  let broken = false
  incoming.on('data', (chunk: Buffer) => (bytes += chunk.length))
  incoming.on('error', () => (broken = true))
  await until(() => broken, 'the connection to break off')
  t.ok(bytes < rows * 1_000_000, `${bytes} bytes came, not all`)
  await query('alter table hooks.events_away rename to events')
})
