import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { addProvider, plain, post, startHooks } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'

// The filters of the log as people type and choose them: one field of words, and a menu of times.

const [, postgres] = backends
const { base, env } = await startHooks(t, postgres)
await addProvider(base, 'shop', { open: true })

async function store(body: string, type: string): Promise<number> {
  const headers = { 'X-Event-Type': type }
  return (await post(base, 'generic/shop', body, headers)).json<{ id: number }>().id
}

const invoice = (customer_name: string): string =>
  JSON.stringify({ data: { object: { customer_name, note: 'two words' } } })
const globex = await store(invoice('Globex'), 'invoice.paid')
const initech = await store(invoice('Initech'), 'invoice.open')
const order = await store('{"customer":"globex","n":1}', 'order.paid')
const text = await store('https://a.test/x says hello', 'note')
/** A page that the browser asks for from the same site. */
const OWN = { 'Sec-Fetch-Site': 'same-origin' }
const all = [text, order, initech, globex]

async function log(query: Readonly<Record<string, string>>) {
  const headers = { 'HX-Request': 'true' }
  const answer = await request(`${base}/log?${new URLSearchParams(query)}`, { headers })
  const ids = [...answer.text.matchAll(/data-id="(\d+)"/g)].map(([, id]) => Number(id))
  return { ...answer, ids }
}

await t.test('words choose events', async (t) => {
  const rows: readonly (readonly [string, readonly number[]])[] = [
    ['', all],
    ['type:invoice.*', [initech, globex]],
    ['customer:Globex', [order, globex]],
    ['type:invoice.* customer:Globex', [globex]],
    ['customer:Glob', []],
    ['data.object.customer_name:Globex', [globex]],
    ['json:n=1', [order]],
    ['json:customer_name=Globex', []],
    ['"two words"', [initech, globex]],
    ['note:"two words" type:*.open', [initech]],
    ['says hello', [text]],
    ['https://a.test/x', [text]],
    [`since:${order}`, [text, order]],
    [`since:${initech} until:${order}`, [order, initech]],
    ['verified:true', []],
    ['header:x-event-type=note', [text]],
    ['provider:generic:shop', all],
    // Still being typed.
    ['type:', all],
    ['type:note customer:', [text]],
  ]
  for (const [q, ids] of rows) t.same((await log({ q })).ids, ids, q)
})

await t.test('the page has the words of any address, which mean the same again', async (t) => {
  const filters: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [{ event_type: 'a b', since: '24h' }, 'type:"a b" since:24h'],
    [{ json: 'a.b=1\n*.c=2\nd=3' }, 'a.b:1 c:2 json:d=3'],
    [{ json: '*.type=x' }, 'json:*.type=x'],
    [{ text: 'type:x' }, '"type:x"'],
    [{ q: 'b  a type:x' }, 'type:x b a'],
  ]
  for (const [query, q] of filters) {
    const address = `${base}/log?${new URLSearchParams(query)}`
    const page = await request(address, { headers: OWN })
    const value = /id="filter-q"[^>]*value="([^"]*)"/.exec(page.text)?.[1] ?? ''
    t.equal(plain(value), q)
    const newest = (source: string) => /data-newest="([^"]*)"/.exec(source)?.[1]
    t.equal(newest((await log({ q })).text), newest((await log(query)).text), q)
  }
})

await t.test('what is no filter is refused', async (t) => {
  const rows: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [{ q: 'since:yesterday' }, /since must be/],
    [{ q: 'verified:maybe' }, /verified must be true or false/],
    [{ when: 'soon' }, /when must be one of/],
    [{ when: 'today', zone: 'Mars/Crater' }, /zone must be a time zone/],
    [{ when: 'days', from: '2026-02-30' }, /from must be a day/],
    [{ when: 'days', to: 'x' }, /to must be a day/],
  ]
  for (const [query, problem] of rows) {
    const { status, text } = await log(query)
    t.equal(status, 400)
    t.match(text, problem)
  }
})

await t.test('days are those of the zone', async (t) => {
  const at = async (id: number, time: string) =>
    postgres.query(env, `update hooks.events set received_at = '${time}' where id = ${id}`)
  await at(globex, '2026-03-28T22:59:59Z')
  await at(initech, '2026-03-28T23:00:00Z')
  await at(order, '2026-03-29T21:59:59Z')
  await at(text, '2026-03-29T22:00:00Z')
  const day = { when: 'days', from: '2026-03-29', to: '2026-03-29' }
  // The day on which the clocks go forward has 23 hours.
  t.same((await log({ ...day, zone: 'Europe/Berlin' })).ids, [order, initech])
  t.same((await log(day)).ids, [text, order], 'of UTC without a zone')
  t.same((await log({ when: 'days', from: '2026-03-30', zone: 'Europe/Berlin' })).ids, [text])
  t.same((await log({ when: '24h' })).ids, [])
})

await t.test('the events are counted, also those of later pages', async (t) => {
  t.match((await log({ limit: '2' })).text, '>4 events<')
  t.match((await log({ limit: '1', q: 'type:invoice.*' })).text, '>2 events<')
  t.match((await log({ limit: '1', q: 'Globex' })).text, '>1 event<')
  const bars = [...(await log({})).text.matchAll(/<title>.*?: (\d+)</g)]
  t.equal(
    bars.reduce((sum, [, count]) => sum + Number(count), 0),
    4,
  )
})
