import { t } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import {
  addProvider,
  deliver,
  payloadOf,
  shown,
  startHooks,
  store as storeAt,
  type Ack,
} from '../../helpers/hooks.ts'

const FRAGMENT = { 'HX-Request': 'true' }

const { base } = await startHooks(t, postgres)
for (const name of ['one', 'two', 'alone']) await addProvider(base, name, { open: true })

const store = (name: string, body: string | Uint8Array, headers = {}) =>
  storeAt(base, name, body, headers)

async function pageOf(path: string) {
  const { status, text } = await request(`${base}/log/${path}`)
  if (status !== 200) throw new Error(`GET /log/${path} answered ${status}, expected 200`)
  return text
}

/** Where the links to other events lead, in their order. */
async function neighboursOf(id: number) {
  const nav = /<nav class="neighbours".*?<\/nav>/s.exec(await pageOf(String(id)))?.[0] ?? ''
  return [...nav.matchAll(/<a(?: rel="(\w+)")? href="\/log\/(\d+)">/g)].map(
    ([, rel = 'provider', to = '']) => `${rel} ${to}`,
  )
}

await t.test('the events before and after, in the log and of the provider', async (t) => {
  const a = await store('one', '1')
  const b = await store('two', '2')
  const c = await store('two', '3')
  const d = await store('one', '4')
  t.same(await neighboursOf(a), [`next ${b}`, `provider ${d}`])
  t.same(await neighboursOf(b), [`prev ${a}`, `next ${c}`, `provider ${c}`])
  t.same(await neighboursOf(c), [`prev ${b}`, `next ${d}`, `provider ${b}`])
  t.same(await neighboursOf(d), [`prev ${c}`, `provider ${a}`])
  const alone = await store('alone', '5')
  t.same(await neighboursOf(alone), [`prev ${d}`])
  t.notMatch(await pageOf(String(alone)), '<bdi>generic:alone</bdi>:', 'a provider without others')
})

await t.test('everything that is known of an event, and its bytes', async (t) => {
  const body = '{"hello":"wörld","long":12345678901234567890}'
  const id = await store('one', body, {
    'X-Event-Type': 'greeting',
    'X-Delivery-Id': 'd-1',
    'X-Plain': 'yes',
  })
  const { facts, headers } = await shown(base, id)
  t.match(facts, {
    Id: String(id),
    Provider: 'generic:one',
    'Event type': 'greeting',
    'Trust mode': 'open',
    'Delivery id': 'd-1',
    'Source address': '127.0.0.1',
  })
  t.match(headers, { 'x-plain': 'yes', 'content-type': 'application/json' })
  const page = await request(`${base}/log/${id}`)
  t.match(page.headers, { 'content-type': /^text\/html/, 'cache-control': 'no-store' })
  t.match(page.text, '12345678901234567890', 'numbers are shown as they were sent')
  const head = await request(`${base}/log/${id}`, { method: 'HEAD' })
  t.match(head, { status: 200, text: '' })
  const fragment = await request(`${base}/log/${id}`, { headers: FRAGMENT })
  t.match(fragment, { status: 200, text: /^<article id="event"/ }, 'it stands beside the log')
  t.match((await request(`${base}/log?open=${id}`)).text, `data-open="${id}"`)
  for (const tab of ['payload', 'request', 'deliveries', 'curl']) {
    const shown = [...(await pageOf(`${id}?tab=${tab}`)).matchAll(/data-part="(\w+)" data-shown/g)]
    t.same(
      shown.map(([, part]) => part),
      [tab],
    )
  }
  const gone = await request(`${base}/log?open=999999`)
  t.match(gone, { status: 200, text: 'This event was removed by retention.' })

  const bytes = Buffer.from([0xff, 0xfe, 0, 0x0a, 0x3c, 0x62, 0x3e])
  for (const body of [bytes, Buffer.of()]) {
    const stored = await store('one', body)
    const page = await pageOf(String(stored))
    t.ok(page.includes(body.toString('base64')))
    t.match(page, `href="/log/${stored}/payload" download`)
    const raw = await request(`${base}/log/${stored}/payload`)
    t.same(raw.body, body, 'byte for byte')
    t.match(raw.headers, {
      'content-type': 'application/octet-stream',
      'content-disposition': /^attachment\b/,
      'content-security-policy': /\bsandbox\b/,
      'x-content-type-options': 'nosniff',
    })
  }
})

await t.test('what a sender writes is text on every page', async (t) => {
  const markup = `<script>alert(1)</script>"'&<img src=x>`
  const headers = { 'X-Event-Type': markup, 'X-Delivery-Id': markup, 'X-Note': markup }
  const type = { 'Content-Type': `text/html; x=${markup}` }
  const id = await store('one', markup, { ...headers, ...type })
  const query = encodeURIComponent(markup)
  for (const path of ['/', '/log', `/log/${id}`, `/log?event_type=${query}`]) {
    const { text } = await request(base + path)
    t.notMatch(text, /<script>alert|<img src=x>/, `${path} makes no foreign element`)
    t.match(text, '&lt;script&gt;alert(1)&lt;/script&gt;', path)
  }
  const found = await request(`${base}/log?event_type=${query}`)
  t.match(found.text, `data-id="${id}"`, 'and it can be filtered by')
  const refused = await request(`${base}/log?since=${query}`, { headers: { Accept: 'text/html' } })
  t.equal(refused.status, 400)
  t.notMatch(refused.text, '<script>alert')

  // The copied command has no character that a terminal obeys.
  const odd = await store('one', '{}', { 'X-Odd': 'a\u009b201~b', "X-It's": "c'd; $(e)" })
  const text = await pageOf(`${odd}?tab=curl`)
  const command = /<pre id="curl-command".*?<\/pre>/s.exec(text)?.[0] ?? ''
  t.match(command, '-H &#39;x-it&#39;\\&#39;&#39;s: c&#39;\\&#39;&#39;d; $(e)&#39;')
  t.notMatch(command, /x-odd|\u009b/)
})

await t.test('of a long payload the page shows the beginning, as it came', async (t) => {
  // A character that lies across the first MiB is not cut in two, which would be no text any more.
  const long = `a${'ü'.repeat(1024 * 1024)}`
  const id = await store('one', long)
  const text = await pageOf(String(id))
  t.equal(/<pre class="payload".*?<code>(.*?)<\/code>/s.exec(text)?.[1], long.slice(0, 200_000))
  t.match(text, `first 200000 characters of ${2 * 1024 * 1024 + 1} bytes`)
  t.equal((await payloadOf(base, id)).length, 2 * 1024 * 1024 + 1, 'all of it is downloaded')

  // A parser drops a line break right after <pre>, so the text must not follow it.
  const spaced = await store('one', '\n\n text', { 'Content-Type': 'text/plain' })
  t.match(await pageOf(String(spaced)), /<pre[^>]*><code>\n\n text/)

  const nested = '['.repeat(20_000) + ']'.repeat(20_000)
  // The indented text of each would have gigabytes, or take as much to make.
  for (const body of [
    nested,
    `{"text":"${'\\"[,'.repeat(1_000)}","in":${nested}}`,
    `[${'{"a":1},'.repeat(200_000)}0]`,
  ]) {
    const text = await pageOf(String(await store('one', body)))
    const what = `${body.length} bytes, ${body.slice(0, 10)}`
    t.notMatch(text, /id="raw-payload"|\?raw=1/, `${what}: not indented`)
    t.ok(text.length < 2_000_000, `${what}: ${text.length} characters`)
  }
  const flat = await store('one', `[${'{"a":"[[[[\\""},'.repeat(10_000)}0]`)
  const page = await pageOf(String(flat))
  t.match(page, /too much of this JSON for a tree.*<code>\[\n  \{/s)
  t.match(page, `href="/log/${flat}?raw=1"`, 'a long one is not there twice')
  t.match(await pageOf(`${flat}?raw=1`), '<code>[{&quot;a&quot;:', 'as it was sent')
})

await t.test('two events are compared', async (t) => {
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
      ['a\\ b', '2', '1'],
      ['gone', 'missing', '[]'],
      ['x-own', 'here', 'missing'],
    ])
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

  await t.test('many differences are counted, long values and paths are cut', async (t) => {
    const list = (value: unknown) => JSON.stringify(Array.from({ length: 300 }, () => value))
    const all = await differences(await store('one', list(1)), await store('one', list('x')))
    t.equal(all.rows.length, 200)
    t.match(all.part, '100 more differences are not listed')
    const type = { 'Content-Type': 'text/plain' }
    const many = await store('two', 'x\n'.repeat(20_000), type)
    const other = await store('two', 'y\n'.repeat(20_000), type)
    t.equal((await differences(many, other)).rows.length, 200, 'too many to be aligned')

    const name = 'n'.repeat(5_000)
    const below = (count: number, value: unknown) => {
      const members = Array.from({ length: count }, (_, at) => [`m${at}`, value])
      return store('one', JSON.stringify({ [name]: Object.fromEntries(members) }))
    }
    const cut = await differences(await below(1, 'y'.repeat(5_000)), await below(1, 'z'))
    const path = `${'n'.repeat(100)}…${'n'.repeat(97)}.m0`
    t.same(cut.rows, [[path, `&quot;${'y'.repeat(499)}…`, '&quot;z&quot;']])
    // 250 paths of 5,000 characters are more than 1 MiB.
    const ids = [await below(250, 1), await below(250, 2)] as const
    const { part } = await differences(ids[0], ids[1])
    t.match(part, /The payloads are too large to compare member by member/)
    for (const id of ids) t.match(part, `href="/log/${id}?raw=1"`)
  })

  const id = await store('one', '{}')
  for (const other of ['999999', '%3Cb%3E', '99999999999999999999']) {
    const { text, part } = await differences(id, other)
    t.match(text, /role="alert">\s*There is no event /, other)
    t.equal(part, '')
    t.notOk(text.includes('<b>'))
  }
})

await t.test('a repeated body can be compared with the earlier event', async (t) => {
  const first = await deliver(base, 'code_host', '{"n":1}', { 'X-GitHub-Delivery': 'd-1' })
  const again = await deliver(base, 'code_host', '{"n":1}', { 'X-GitHub-Delivery': 'd-2' })
  const { id } = again.json<Ack>()
  t.match(await pageOf(String(id)), `href="/log/${id}?compare=${first.json<Ack>().id}"`)
})
