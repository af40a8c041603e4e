import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { addProvider, payloadOf, post, shown, startHooks } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const MARKUP = `<script>alert(1)</script>"'&<img src=x>`
const ESCAPED = '&lt;script&gt;alert(1)&lt;/script&gt;'
const [, postgres] = backends

await onPostgres(t, 'GET /log/{id}', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'any', { open: true })
  const store = async (body: string | Uint8Array, headers = {}): Promise<number> => {
    const ack = await post(base, 'generic/any', body, headers)
    if (ack.status !== 202) throw new Error(`the delivery answered ${ack.status}, expected 202`)
    return ack.json<{ id: number }>().id
  }

  await t.test('an event with everything that is known of it', async (t) => {
    const body = '{"hello":"wörld","long":12345678901234567890}'
    const id = await store(body, {
      'X-Event-Type': 'greeting',
      'X-Delivery-Id': 'd-1',
      'X-Plain': 'yes',
    })
    const { facts, headers } = await shown(base, id)
    t.match(facts, {
      Id: String(id),
      Provider: 'generic:any',
      'Event type': 'greeting',
      'Trust mode': 'open',
      Verified: 'no',
      'Delivery id': 'd-1',
      'Content type': 'application/json',
      'Source address': '127.0.0.1',
    })
    t.match(headers, { 'x-plain': 'yes', 'content-type': 'application/json' })
    const page = await request(`${base}/log/${id}`)
    t.match(page.headers, { 'content-type': /^text\/html/, 'cache-control': 'no-store' })
    t.match(page.text, '12345678901234567890', 'numbers are shown as they were sent')
    t.equal((await payloadOf(base, id)).toString(), body)
    const head = await request(`${base}/log/${id}`, { method: 'HEAD' })
    t.match({ status: head.status, size: head.body.length }, { status: 200, size: 0 })
  })

  await t.test('bytes that are no text are shown as base64 and kept as they are', async (t) => {
    const bytes = Buffer.from([0xff, 0xfe, 0, 0x0a, 0x3c, 0x62, 0x3e])
    const id = await store(bytes, { 'Content-Type': 'application/octet-stream' })
    const { text } = await request(`${base}/log/${id}`)
    t.match(text, bytes.toString('base64'))
    t.match(text, 'base64')
    const raw = await request(`${base}/log/${id}/payload`)
    t.ok(raw.body.equals(bytes), 'byte for byte')
    t.match(raw.headers, {
      'content-type': 'application/octet-stream',
      'content-disposition': /^attachment\b/,
      'content-security-policy': /\bsandbox\b/,
      'x-content-type-options': 'nosniff',
    })
  })

  await t.test('a body without bytes has a page and an empty payload', async (t) => {
    const id = await store('')
    t.equal((await request(`${base}/log/${id}`)).status, 200)
    t.equal((await payloadOf(base, id)).length, 0)
  })

  await t.test(
    'of a long payload the page shows the beginning, and says how long it is',
    async (t) => {
      const shown = /<pre class="payload".*?<code>(.*?)<\/code>/s
      // A character that lies across the first MiB is not cut in two, which would be no text any more.
      const long = `a${'ü'.repeat(1024 * 1024)}`
      const id = await store(long)
      const { text } = await request(`${base}/log/${id}`)
      t.equal(shown.exec(text)?.[1], long.slice(0, 200_000))
      t.match(text, `first 200000 characters of ${2 * 1024 * 1024 + 1} bytes`)
      t.equal((await payloadOf(base, id)).length, 2 * 1024 * 1024 + 1, 'all of it is downloaded')
      const whole = 'b'.repeat(1024 * 1024)
      const page = await request(`${base}/log/${await store(whole)}`)
      t.match(page.text, `first 200000 of ${1024 * 1024} characters`)
    },
  )

  await t.test('what is costly to take apart is shown as it came', async (t) => {
    const nested = '['.repeat(20_000) + ']'.repeat(20_000)
    // As it came: the indented text of each would have gigabytes, or take as much to make.
    const bodies: readonly (readonly [string, Record<string, string>])[] = [
      [nested, {}],
      [`{"text":"${'\\"[,'.repeat(1_000)}","in":${nested}}`, {}],
      [`[${'{"a":1},'.repeat(200_000)}0]`, {}],
      ['a&'.repeat(600_000), { 'Content-Type': 'application/x-www-form-urlencoded' }],
    ]
    for (const [body, headers] of bodies) {
      const { status, text } = await request(`${base}/log/${await store(body, headers)}`)
      const what = `${body.length} bytes, ${body.slice(0, 10)}`
      t.equal(status, 200, what)
      t.notMatch(text, 'id="raw-payload"', `${what}: not indented`)
      t.ok(text.length < 2_000_000, `${what}: ${text.length} characters`)
    }
    const fields = (count: number): Promise<number> =>
      store('a&'.repeat(count - 1) + 'b=c', {
        'Content-Type': 'application/x-www-form-urlencoded',
      })
    const page = async (id: number): Promise<string> => (await request(`${base}/log/${id}`)).text
    t.match(await page(await fields(1_000)), 'b = c', 'a form of a thousand fields')
    t.notMatch(await page(await fields(1_001)), 'id="raw-payload"', 'one of more')
    const flat = `[${'{"a":"[[[[\\""},'.repeat(10_000)}0]`
    t.match((await request(`${base}/log/${await store(flat)}`)).text, 'id="raw-payload"')
  })

  await t.test('the copied command has no character that a terminal obeys', async (t) => {
    const id = await store('{}', { 'X-Odd': 'a\u009b201~b', "X-It's": "c'd; $(e)" })
    const { text } = await request(`${base}/log/${id}`)
    const command = /<pre id="curl-command".*?<\/pre>/s.exec(text)?.[0] ?? ''
    t.match(command, '-H &#39;x-it&#39;\\&#39;&#39;s: c&#39;\\&#39;&#39;d; $(e)&#39;')
    t.notMatch(command, /x-odd|\u009b/)
  })

  await t.test('what a sender writes is text on every page', async (t) => {
    const headers = { 'X-Event-Type': MARKUP, 'X-Delivery-Id': MARKUP, 'X-Note': MARKUP }
    const id = await store(MARKUP, { ...headers, 'Content-Type': `text/html; x=${MARKUP}` })
    const query = encodeURIComponent(MARKUP)
    const paths = ['/', '/log', `/log/${id}`, `/log?event_type=${query}`, `/log?provider=${query}`]
    for (const path of [...paths, `/log?limit=1`]) {
      for (const own of [{}, { 'HX-Request': 'true' }]) {
        const { status, text } = await request(base + path, { headers: own })
        t.equal(status, 200, path)
        t.notOk(text.includes('<script>alert'), `${path} runs no foreign script`)
        t.notOk(text.includes('<img src=x>'), `${path} makes no foreign element`)
        if (own['HX-Request'] === undefined) t.ok(text.includes(ESCAPED), `${path} shows the text`)
      }
    }
    const found = await request(`${base}/log?event_type=${query}`)
    t.match(found.text, `data-id="${id}"`, 'and it can be filtered by')
    const refused = await request(`${base}/log?since=${query}`, {
      headers: { Accept: 'text/html' },
    })
    t.equal(refused.status, 400)
    t.notOk(refused.text.includes('<script>alert'))
  })
})

t.test('there is no such event', async (t) => {
  const { base } = await startHooks(t, postgres)
  const ids = [
    '999999',
    '0',
    'abc',
    '1.5',
    '-1',
    '9007199254740993',
    '99999999999999999999',
    '1e3',
    '%31x',
  ]
  for (const id of ids) {
    for (const path of [`/log/${id}`, `/log/${id}/payload`]) {
      const { status, headers, ...response } = await request(base + path)
      t.equal(status, 404, path)
      t.equal(headers['content-type'], 'application/problem+json')
      t.match(response.json(), {
        type: 'about:blank',
        title: 'Not Found',
        status: 404,
        instance: /^\/log\//,
      })
    }
  }
  const browser = await request(`${base}/log/999999`, {
    headers: { Accept: 'text/html,*/*;q=0.8' },
  })
  t.match(browser, { status: 404, headers: { 'content-type': /^text\/html/ }, text: /<!doctype/i })
})

await onPostgres(t, 'GET /log?rejected=1', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'ci')
  await addProvider(base, 'cd')
  for (const name of ['ci', 'cd', 'ci', 'ci']) {
    const refused = await post(base, `generic/${name}`, '{}', { Authorization: 'Bearer wrong' })
    t.equal(refused.status, 403)
  }
  await until(async () => (await rejected(base, '')).length === 4, 'four refusals to be stored')
  t.same(await rejected(base, ''), ['generic:ci', 'generic:ci', 'generic:cd', 'generic:ci'])
  t.same(await rejected(base, '&provider=generic:cd'), ['generic:cd'])
  const first = await request(`${base}/log?rejected=1&limit=3`, {
    headers: { 'HX-Request': 'true' },
  })
  t.notMatch(first.text, /<!doctype/i)
  const next = /href="(\/log\?[^"]*cursor=[^"]*)"/.exec(first.text)?.[1]?.replaceAll('&amp;', '&')
  t.same(await rejected(base, '', next), ['generic:ci'], 'the oldest is on the next page')
  const events = await request(`${base}/log`)
  t.notMatch(events.text, 'data-id="', 'nothing of it was stored as an event')
  for (const query of ['cursor=zzz', 'limit=0']) {
    t.equal((await request(`${base}/log?rejected=1&${query}`)).status, 400, query)
  }
})

/** Providers of the refused deliveries on a page, newest first. */
async function rejected(base: string, query: string, path?: string): Promise<readonly string[]> {
  const { status, text } = await request(base + (path ?? `/log?rejected=1&limit=50${query}`))
  if (status !== 200) throw new Error(`the log answered ${status}, expected 200`)
  const table = /<tbody.*?<\/tbody>/s.exec(text)?.[0] ?? ''
  return [...table.matchAll(/>\s*(generic:\w+)\s*</g)].map((match) => match[1] ?? '')
}
