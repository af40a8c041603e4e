import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import { addProvider, deliver, eventIds, post, startHooks, type Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint, callTool } from '../helpers/mcp.ts'
import { refuseAll, type Refusal } from '../helpers/refusals.ts'
import { startServer } from '../helpers/server.ts'
import { openStream } from '../helpers/sse.ts'

type Listed = { events: readonly { id: number }[]; next_cursor: string | null }

const [, postgres] = backends

/** Ids by the query that names them, newest first. */
async function listed(base: string, query: string): Promise<readonly number[]> {
  const search = { 'hx-request': 'true' }
  const { status, json } = await apiOf(base)<Listed>('GET', `/events?${query}`, undefined, search)
  if (status !== 200) throw new Error(`${query} answered ${status}: ${JSON.stringify(json)}`)
  return json.events.map(({ id }) => id)
}

await eachBackend(t, 'filters of the log', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'shop', { open: true })
  await addProvider(base, 'other', { open: true })
  async function send(type: string, body = '{}', name = 'shop', headers = {}): Promise<number> {
    const sent = { 'X-Event-Type': type, ...headers }
    return (await post(base, `generic/${name}`, body, sent)).json<Ack>().id
  }
  const paid = await send('invoice.paid', '{"id":"i-1","customer":{"id":"c-1"}}')
  const failed = await send('invoice.failed', '{"id":"i-2","customer":{"id":"c-1"}}')
  const draft = await send('Invoice.Draft', '{}', 'other', { 'X-One': 'Yes=1' })
  const order = await send('order_failed.failed', '{}', 'shop', { 'x-one': 'no' })
  const lower = await send('push')
  const upper = await send('Push', '{}', 'other')
  const bare = (await post(base, 'generic/shop', '{}')).json<Ack>().id
  const signed = await deliver(base, 'code_host', '{"a":1}', { 'X-CodeHost-Event': 'ping' })
  const { id: ping, received_at } = signed.json<Ack>()
  const all = [ping, bare, upper, lower, order, draft, failed, paid]
  const find = (query: string) => listed(base, query)

  await t.test('types: exactly, by wildcard, and in any case', async (t) => {
    const cases: readonly (readonly [string, readonly number[]])[] = [
      ['event_type=invoice.paid', [paid]],
      ['event_type=invoice.*', [draft, failed, paid]],
      ['event_type=INVOICE.*', [draft, failed, paid]],
      ['event_type=*.failed', [order, failed]],
      ['event_type=in*.*i*', [failed, paid]],
      ['event_type=invoice.*&provider=generic:other', [draft]],
      ['event_type=*invoice.paid*', [paid]],
      ['event_type=push', [lower]],
      ['event_type=Push', [upper]],
      ['event_type=PUSH', [upper, lower]],
      ['event_type=PUSH&provider=generic:shop', [lower]],
      ['event_type=invoice.draft', [draft]],
      ['event_type=*', all],
      ['event_type=invoice', []],
      ['event_type=invoice%25*', []],
      ['event_type=invoice_*', []],
      ['event_type=order_*', [order]],
      ['event_type=%5C*', []],
      ['event_type=nothing.*', []],
    ]
    for (const [query, ids] of cases) t.same(await find(query), ids, query)
  })

  await t.test('until: through an id, before a time', async (t) => {
    const cases: readonly (readonly [string, readonly number[]])[] = [
      [`until=${failed}`, [failed, paid]],
      [`since=${failed}&until=${draft}`, [draft, failed]],
      [`since=${order}&until=${failed}`, []],
      [`until=${received_at}`, all.slice(1)],
      ['until=2000-01-01', []],
      ['until=9007199254740991', all],
      ['since=1h', all],
      ['since=today', all],
      ['until=1h', []],
      ['since=999999999d', all],
      [`until=${upper}&event_type=*push`, [upper, lower]],
      [`until=${upper}&text=i-`, [failed, paid]],
    ]
    for (const [query, ids] of cases) t.same(await find(query), ids, query)
  })

  await t.test('verification, headers and members of the payload', async (t) => {
    const members = (...lines: readonly string[]) => `json=${encodeURIComponent(lines.join('\n'))}`
    const cases: readonly (readonly [string, readonly number[]])[] = [
      ['verified=true', [ping]],
      ['verified=false', all.slice(1)],
      ['verified=', all],
      ['header=X-One', [order, draft]],
      ['header=x-one=Yes=1', [draft]],
      ['header=x-one=yes=1', []],
      ['header=x-one=Yes', []],
      ['header=one', []],
      ['header=x-event-type=push', [lower]],
      ['header=x-codehost-signature-256=%C2%ABredacted%C2%BB', [ping]],
      [members('customer.id=c-1'), [failed, paid]],
      [members('customer.id=c-1', 'id=i-2'), [failed]],
      [members('customer.id=c-1', '', ' id=i-1 ', ''), [paid]],
      [members('customer.id=c-1', 'id=i-3'), []],
      [`json=${encodeURIComponent('id=i-2\r\ncustomer.id=c-1')}`, [failed]],
      ['verified=false&event_type=invoice.*&header=x-one', [draft]],
      ['verified=true&event_type=invoice.*', []],
      [`${members('customer.id=c-1', 'id=i-1')}&event_type=*.PAID&since=1h`, [paid]],
    ]
    for (const [query, ids] of cases) t.same(await find(query), ids, query)
  })

  // All else is the same on both.
  if (backend !== postgres) return

  await t.test('pages go on with their filters', async (t) => {
    const pages: number[] = []
    let cursor = ''
    do {
      const query = `?limit=1&event_type=invoice.*&until=${failed}&cursor=${cursor}`
      const { json } = await apiOf(base)<Listed>('GET', `/events${query}`)
      pages.push(...json.events.map(({ id }) => id))
      cursor = json.next_cursor ?? ''
    } while (cursor !== '')
    t.same(pages, [failed, paid])
  })

  await t.test('the live stream and the tools know wildcards', async (t) => {
    const wanted = 'event_type=INVOICE.*&provider=generic:shop'
    const stream = await openStream(t, `${base}/events?${wanted}`)
    // The status shows that the stream has its position: what comes from now on is sent.
    await stream.until(({ event }) => event === 'status', 'the first status')
    await send('order')
    await send('invoice.late', '{}', 'other')
    const late = await send('invoice.late')
    const { data } = await stream.until(({ event }) => event === 'event-received')
    t.equal(JSON.parse(data).id, late, 'the first that fits')
    const agent = await addEndpoint(base, 'agent')
    const call = async (args: Record<string, unknown>) => {
      const result = await callTool(agent, 'list_webhook_events', args)
      return (result['structuredContent'] as unknown as Listed).events.map(({ id }) => id)
    }
    t.same(await call({ event_type: 'invoice.*', until: failed }), [failed, paid])
    t.same(await call({ verified: true }), [ping])
    t.same(await call({ header: 'x-one=no' }), [order])
    t.same(await call({ json: 'id=i-1\ncustomer.id=c-1', since: '1h' }), [paid])
  })

  await t.test('the page: what there is, what is set, and how to take it away', async (t) => {
    const { text } = await request(`${base}/log`)
    t.match(text, /<datalist id="log-types">.*<option value="type:invoice.paid">/s)
    t.match(text, '<option value="1h">Last hour</option>')
    t.match(text, 'href="/log/export"')
    const own = { headers: { Referer: `${base}/log` } }
    const query = 'provider=generic%3Ashop&event_type=invoice.*&json=id%3Di-1%0Acustomer.id%3Dc-1'
    const page = (await request(`${base}/log?${query}&limit=5`, own)).text
    t.match(page, 'value="type:invoice.* json:id=i-1 customer.id:c-1"')
    t.match(page, /<option value="generic:shop" selected>/)
    t.match(page, '<input type="hidden" name="limit" value="5"')
    t.match(page, `href="/log/export?${query.replaceAll('&', '&amp;')}"`)
    const other = (await request(`${base}/log?provider=generic%3Aother`)).text
    t.notMatch(other, '<option value="type:invoice.paid">', 'types of the chosen provider')
  })

  await t.test('refused', async (t) => {
    const bad = {
      verified: ['yes', '1', 'TRUE'],
      header: ['=x', 'a%20b', '%20=1', `x=${'y'.repeat(500)}`],
      until: ['yesterday', '2026-02-30', '1x', '-1', '9223372036854775808'],
      since: ['1w', 'h', 'Today'],
      json: ['a=1%0Ab', 'a%0Ab=1', `a=${'1'.repeat(500)}`],
    }
    const rows = Object.entries(bad).flatMap(([field, values]) =>
      values.flatMap((value): readonly Refusal[] => {
        const message = new RegExp(`\\b${field}\\b`)
        return [
          [`GET /log?${field}=${value}`, 400, undefined, message],
          [`GET /api/v1/events?${field}=${value}`, 400, undefined, message],
          [`GET /api/v1/events/export?${field}=${value}`, 400, undefined, message],
        ]
      }),
    )
    const replay = (body: object) => ({ call: 'POST /api/v1/events/replay', body })
    await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
      ...rows,
      ['GET /log?header=x-one', 403, undefined, /HX-Request/],
      ['GET /api/v1/events?header=x-one', 403, undefined, /HX-Request/],
      ['GET /log/export?header=x-one', 403, undefined, /HX-Request/],
      [replay({ since: '1h', dry_run: true }), 400, undefined, /since/],
      [replay({ until: 'today', dry_run: true }), 400, undefined, /until/],
    ])
  })

  await t.test('replay jobs have the same filters', async (t) => {
    const filter = { event_type: 'invoice.*', verified: 'false', until: failed, dry_run: true }
    const { json } = await apiOf(base)('POST', '/events/replay', filter)
    t.match(json, { count: 2, highest_id: failed })
  })
})

t.test('a sender that invents a type for each event', async (t) => {
  const { base, env } = await startHooks(t, postgres)
  await addProvider(base, 'many', { open: true })
  await addProvider(base, 'few', { open: true })
  const send = (type: string, name: string) =>
    post(base, `generic/${name}`, '{}', { 'X-Event-Type': type })
  const known = async (provider: string): Promise<number> => {
    const count = `select count(*)::int as n from hooks.event_types where provider = '${provider}'`
    return Number((await postgres.query(env, count))[0]?.['n'])
  }
  // Types that a batch brings are all kept, so they come a few at a time.
  for (let at = 0; at < 520; at += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, n) => send(`made.up.${at + n}`, 'many')))
  }
  const kept = await known('generic:many')
  t.ok(kept >= 500 && kept < 510, `${kept} are kept`)
  const last = (await send('made.up.last', 'many')).json<Ack>().id
  const usual = (await send('usual', 'few')).json<Ack>().id
  t.equal(await known('generic:many'), kept)
  t.equal(await known('generic:few'), 1, 'others are not concerned')
  t.same(await listed(base, 'event_type=made.*.last'), [last], 'and found all the same')
  t.equal((await listed(base, 'event_type=made.*&limit=200')).length, 200)
  t.same(await listed(base, 'event_type=usu*&provider=generic:few'), [usual])

  await t.test('another instance adds the types that it sees', async (t) => {
    const second = await startServer(t, { env, services: ['hooks'] })
    const again = await post(second.hooks, 'generic/few', '{}', { 'X-Event-Type': 'usual' })
    const fresh = await post(second.hooks, 'generic/few', '{}', { 'X-Event-Type': 'unusual' })
    const ids = [fresh, again].map((ack) => ack.json<Ack>().id)
    t.same(await listed(base, 'event_type=*usual&provider=generic:few'), [...ids, usual])
    t.equal(await known('generic:few'), 2)
  })
})
