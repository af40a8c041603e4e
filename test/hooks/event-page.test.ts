import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { addProvider, deliver, post, postForm, shown, startHooks } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const { base } = await startHooks(t, postgres)
for (const name of ['one', 'two']) await addProvider(base, name, { open: true })

async function store(name: string, body: string | Uint8Array, headers = {}): Promise<number> {
  const { status, ...answer } = await post(base, `generic/${name}`, body, headers)
  if (status !== 202) throw new Error(`the delivery answered ${status}, expected 202`)
  return answer.json<Ack>().id
}

async function pageOf(path: string): Promise<string> {
  const { status, text } = await request(`${base}/log/${path}`)
  if (status !== 200) throw new Error(`GET /log/${path} answered ${status}, expected 200`)
  return text
}

/** Where the links to other events lead, in their order. */
async function neighboursOf(id: number): Promise<readonly string[]> {
  const nav = /<nav class="neighbours".*?<\/nav>/s.exec(await pageOf(String(id)))?.[0] ?? ''
  return [...nav.matchAll(/<a(?: rel="(\w+)")? href="\/log\/(\d+)">/g)].map(
    ([, rel = 'provider', to = '']) => `${rel} ${to}`,
  )
}

await t.test('the events before and after, in the log and of the provider', async (t: Test) => {
  const a = await store('one', '1')
  const b = await store('two', '2')
  const c = await store('two', '3')
  const d = await store('one', '4')
  t.same(await neighboursOf(a), [`next ${b}`, `provider ${d}`])
  t.same(await neighboursOf(b), [`prev ${a}`, `next ${c}`, `provider ${c}`])
  t.same(await neighboursOf(c), [`prev ${b}`, `next ${d}`, `provider ${b}`])
  t.same(await neighboursOf(d), [`prev ${c}`, `provider ${a}`])
})

await t.test('a value of the payload leads to the events that have it', async (t: Test) => {
  const body = '{"order":{"id":"o & 1","paid":true,"sum":1.50},"lines":[{"sku-no":"a+b=c"}]}'
  const id = await store('one', body)
  await store('two', body)
  await store('one', '{"order":{"id":"o & 2","paid":false,"sum":1.5},"lines":[{"sku-no":""}]}')
  const links = [...(await pageOf(String(id))).matchAll(/href="(\/log\?[^"]*json=[^"]*)"/g)]
  t.equal(links.length, 4)
  for (const [, href = ''] of links) {
    const path = href.replaceAll('&amp;', '&')
    const list = await request(base + path, { headers: { 'HX-Request': 'true' } })
    const ids = [...list.text.matchAll(/data-id="(\d+)"/g)].map((match) => Number(match[1]))
    t.same(ids, [id], path)
  }
})

await t.test('the request stands as it was sent, without its secrets', async (t: Test) => {
  const headers = { 'X-bEE': '1', 'x-ANT': '2', 'X-Token': 'geheim-geheim' }
  const sent = await post(base, 'generic/one?page=2&token=geheim-geheim', '{}', headers)
  const text = await pageOf(`${sent.json<Ack>().id}?tab=request`)
  t.match(text, /POST <bdi>\/webhooks\/generic\/one\?page=2&amp;token=«redacted»<\/bdi>/)
  const names = [...text.matchAll(/<th [^>]*scope="row"[^>]*>([^<]*)<\/th>/g)].map(
    (match) => match[1],
  )
  const own = names.filter((name) => /^x-/i.test(name ?? ''))
  t.same(own, ['X-bEE', 'x-ANT', 'X-Token'])
  t.notMatch(text, 'geheim')
})

await t.test('the fragment stands beside the log', async (t: Test) => {
  const id = await store('one', '{"a":1}')
  const { status, text } = await request(`${base}/log/${id}`, {
    headers: { 'HX-Request': 'true' },
  })
  t.equal(status, 200)
  t.match(text, /^<article id="event"/)
  const ids = [...text.matchAll(/\sid="([^"]*)"/g)].map((match) => match[1] ?? '')
  const log = await request(`${base}/log`)
  for (const own of ids) t.notOk(log.text.includes(`id="${own}"`), own)
})

await t.test('two events are compared', async (t: Test) => {
  /** The rows of the comparison: place, this event, the other one. */
  async function differences(own: number, other: number | string) {
    const text = await pageOf(`${own}?compare=${other}`)
    const part = /<section aria-labelledby="compared-title">.*?<\/section>/s.exec(text)?.[0] ?? ''
    const rows = [...part.matchAll(/<tr[^>]*>\s*<th [^>]*scope="row"[^>]*>(.*?)<\/tr>/gs)].map(
      ([, row = '']) =>
        row
          .split(/<td[^>]*>/)
          .map((cell) => cell.replace(/<span class="narrow-only.*?<\/span>|<[^>]*>/gs, '').trim()),
    )
    return { part, text, rows: rows.filter(([name]) => !/^content-length$/.test(name ?? '')) }
  }

  await t.test('by the members of their JSON', async (t) => {
    const a = await store('one', '{"same":1,"n":1,"in":{"x":"a"},"gone":[],"a b":1}')
    const b = await store('one', ' {"in":{"x":"<b>"},"n":2,"same":1,"new":null,"a b":2}', {
      'X-Own': 'here',
    })
    const { rows } = await differences(b, a)
    t.same(rows, [
      ['in.x', '&quot;&lt;b&gt;&quot;', '&quot;a&quot;'],
      ['n', '2', '1'],
      ['new', 'null', 'missing'],
      ['[&quot;a b&quot;]', '2', '1'],
      ['gone', 'missing', '[]'],
      ['x-own', 'here', 'missing'],
    ])
    const spaced = await store('one', '{ "n": 1 }')
    const plain = await store('one', '{"n":1}')
    t.match((await differences(spaced, plain)).part, /The values are the same/)
  })

  await t.test('by their lines', async (t) => {
    const type = { 'Content-Type': 'text/plain' }
    const a = await store('two', 'first\nsecond\nthird\nlast', type)
    const b = await store('two', 'first\n2nd\nthird\nadded\nlast', type)
    t.same((await differences(b, a)).rows, [
      ['line 2', '2nd', 'second'],
      ['line 4', 'added', 'missing'],
    ])
    const same = await store('two', 'first\nsecond\nthird\nlast', type)
    t.match((await differences(same, a)).part, /the same, byte for byte.*headers are the same/s)
    const bytes = await store('two', Buffer.from([0xff, 0]), type)
    t.match((await differences(bytes, a)).part, /They are not text/)
  })

  await t.test('many differences are counted, long values are cut', async (t) => {
    const a = await store('one', JSON.stringify(Array.from({ length: 300 }, (_, at) => at)))
    const b = await store('one', JSON.stringify(Array.from({ length: 300 }, () => 'x')))
    const { rows, part } = await differences(a, b)
    t.equal(rows.length, 200)
    t.match(part, '100 more differences are not listed')
    const long = await store('one', JSON.stringify({ text: 'y'.repeat(5_000) }))
    const short = await store('one', '{"text":"z"}')
    const cut = await differences(long, short)
    t.equal(cut.rows[0]?.[1], `&quot;${'y'.repeat(499)}…`)
    const lines = (count: number, text: string): string => `${text}\n`.repeat(count)
    const many = await store('two', lines(20_000, 'x'), { 'Content-Type': 'text/plain' })
    const other = await store('two', lines(20_000, 'y'), { 'Content-Type': 'text/plain' })
    t.equal((await differences(many, other)).rows.length, 200, 'too many to be aligned')
  })

  await t.test('long paths are cut; too many of them are not shown', async (t) => {
    const below = (name: string, count: number, value: number): string => {
      const members = Array.from({ length: count }, (_, at) => [`m${at}`, value])
      return JSON.stringify({ [name]: Object.fromEntries(members) })
    }
    const name = 'n'.repeat(5_000)
    const pair = async (count: number, own = name): Promise<[number, number]> => [
      await store('one', below(own, count, 1)),
      await store('one', below(own, count, 2)),
    ]
    const [a, b] = await pair(3)
    const { rows } = await differences(a, b)
    t.same(
      rows.map(([path]) => path),
      [0, 1, 2].map((at) => `${'n'.repeat(100)}…${'n'.repeat(97)}.m${at}`),
    )
    // 250 paths of 5,000 characters are more than 1 MiB.
    const [c, d] = await pair(250)
    const { part } = await differences(c, d)
    t.match(part, /The payloads are too large to compare member by member/)
    for (const id of [c, d]) t.match(part, `href="/log/${id}?raw=1"`)
    // What is the same has no path.
    const e = await store('one', below(name, 250, 1).replace('"m7":1', '"m7":2'))
    t.equal((await differences(c, e)).rows.length, 1)
  })

  await t.test('with an event that is not there', async (t) => {
    const id = await store('one', '{}')
    for (const other of ['999999', 'x', '-1', '%3Cb%3E', '99999999999999999999']) {
      const { text, part } = await differences(id, other)
      t.match(text, /role="alert">\s*There is no event /, other)
      t.equal(part, '')
      t.notOk(text.includes('<b>'))
    }
    t.notMatch((await differences(id, '')).text, 'There is no event')
  })
})

await t.test('a repeated body can be compared with the earlier event', async (t: Test) => {
  const first = await deliver(base, 'code_host', '{"n":1}', { 'X-GitHub-Delivery': 'd-1' })
  const again = await deliver(base, 'code_host', '{"n":1}', { 'X-GitHub-Delivery': 'd-2' })
  const { id } = again.json<Ack>()
  t.match(await pageOf(String(id)), `href="/log/${id}?compare=${first.json<Ack>().id}"`)
})

// Last: it removes the others.
await t.test('the oldest event that is kept has none before it', async (t: Test) => {
  await store('one', '1')
  const first = await store('two', '2')
  const last = await store('one', '3')
  await postForm(base, '/settings', { retention_max_rows: '2' })
  const isGone = async (): Promise<boolean> => (await neighboursOf(first)).length === 1
  await until(isGone, 'retention to remove the events before')
  t.same(await neighboursOf(first), [`next ${last}`])
  t.same(await neighboursOf(last), [`prev ${first}`])
  t.equal((await shown(base, last)).facts['Id'], String(last))
})
