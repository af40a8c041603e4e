import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { startServer } from '../helpers/server.ts'
import {
  SIGNED_ENV,
  addProvider,
  deliver,
  eventIds,
  payloadOf,
  plain,
  post,
  shown,
} from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

type Event = { id: number; provider: string; event_type: string | null; received_at: Date }

const FRAGMENT = { 'HX-Request': 'true' }

// Five events share each instant.
const SEED = `
insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
select (array['code_host', 'generic:ci', 'generic:cd'])[1 + n % 3],
       (array['push', 'deploy', null, 'push'])[1 + n % 4],
       3, '[]', 'x', date_trunc('second', now()) - ((60 - n) / 5) * interval '1 minute'
  from generate_series(1, 60) as n`
const STORED = 'select id::int, provider, event_type, received_at from hooks.events'

const MARKUP = `<script>alert(1)</script>"'&<img src=x>`
const ESCAPED = '&lt;script&gt;alert(1)&lt;/script&gt;'

const [, postgres] = backends
const env = { ...SIGNED_ENV, ...(await postgres.env(t)) }
await postgres.query(env, SEED)
const stored = (await postgres.query(env, STORED)).map((row) => row as Event).toSorted(newestFirst)
const { hooks: base } = await startServer(t, { services: ['hooks'], env })

await t.test('the list', async (t: Test) => {
  const ids = (passes: (event: Event) => boolean): readonly number[] =>
    stored.filter(passes).map(({ id }) => id)
  const all = ids(() => true)
  const middle = stored[29] ?? stored[0]
  if (middle === undefined) throw new Error('nothing was stored, expected 60 events')

  await t.test('newest first, ids decide between equal times', async (t) => {
    const first = await list('')
    t.same(first.ids, all.slice(0, 50), 'fifty are the default')
    const second = await list(first.next?.replace('/log', '') ?? '')
    t.same(second.ids, all.slice(50))
    t.equal(second.next, undefined, 'the last page leads nowhere')
    t.same((await list('?limit=1')).ids, all.slice(0, 1))
    t.same((await list('?limit=60')).ids, all)
    t.equal((await list('?limit=60')).next, undefined, 'exactly full is the last page')
    t.same((await list('?limit=200')).ids, all)
    t.same(await eventIds(base), all)
  })

  await t.test('a full page, or the table alone for htmx', async (t) => {
    const page = await request(`${base}/log?limit=7`)
    const fragment = await request(`${base}/log?limit=7`, { headers: FRAGMENT })
    for (const { status, headers } of [page, fragment]) {
      t.match({ status, headers }, { status: 200, headers: { 'content-type': /^text\/html/ } })
      t.match(headers.vary, /HX-Request/i, 'a cache must not take one for the other')
    }
    t.match(page.text, /^\s*<!doctype html>/i)
    t.notMatch(fragment.text, /<!doctype|<html|<head|<body/i)
    t.same(idsIn(fragment.text), all.slice(0, 7))
    t.equal(nextOf(fragment.text), nextOf(page.text))
    const following = await request(base + nextOf(fragment.text), { headers: FRAGMENT })
    t.same(idsIn(following.text), all.slice(7, 14))
    for (const column of ['Provider', 'Event type', 'Verify status', 'Payload size']) {
      t.match(page.text, column, `a column for ${column}`)
    }
  })

  await t.test('filters', async (t) => {
    const at = middle.received_at.toISOString()
    const since = (event: Event): boolean => event.received_at >= middle.received_at
    const cases: readonly (readonly [string, (event: Event) => boolean])[] = [
      ['provider=generic:ci', ({ provider }) => provider === 'generic:ci'],
      ['provider=nobody', () => false],
      ['provider=%00', () => false],
      ['event_type=push%00', () => false],
      ['event_type=push', ({ event_type }) => event_type === 'push'],
      ['event_type=pus', () => false],
      [
        'provider=code_host&event_type=push',
        (e) => e.provider === 'code_host' && e.event_type === 'push',
      ],
      [`since=${middle.id}`, ({ id }) => id >= middle.id],
      [`since=${at}`, since],
      [`since=${at.slice(0, 19)}`, since],
      [`since=${encodeURIComponent(inZone(middle.received_at))}`, since],
      [`since=${at}&provider=generic:cd`, (e) => since(e) && e.provider === 'generic:cd'],
      [
        `since=${middle.id}&event_type=deploy`,
        (e) => e.id >= middle.id && e.event_type === 'deploy',
      ],
      ['provider=&event_type=&since=&cursor=', () => true],
      ['since=9223372036854775807', () => false],
      ['since=2028-02-29', () => false],
    ]
    for (const [query, passes] of cases) {
      t.same((await list(`?limit=200&${query}`)).ids, ids(passes), query)
    }
    const first = await list('?limit=4&provider=generic:ci')
    const second = await list(first.next?.replace('/log', '') ?? '')
    const own = ids(({ provider }) => provider === 'generic:ci')
    t.same([...first.ids, ...second.ids], own.slice(0, 8), 'the next page keeps the filter')
  })

  const cursor = (value: unknown): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url')

  await t.test('below all that is kept there is nothing older', async (t) => {
    for (const list of ['', 'rejected=1&']) {
      const { text } = await request(`${base}/log?limit=5&${list}cursor=${cursor([1])}`)
      t.match(text, 'Nothing older is kept.', list)
      t.match(
        text,
        /id="log-rows-more-link"[^>]*>No older entries\./,
        'for the link that led here',
      )
      t.notMatch(text, 'No event was received')
    }
  })

  await t.test('the page says from where on new events are news', async (t) => {
    const newest = Math.max(...all)
    t.match((await request(`${base}/log?limit=1`)).text, `data-last="${newest}"`)
    for (const query of ['', '?provider=code_host', '?event_type=none']) {
      t.match((await request(`${base}/log${query}`)).text, `data-position="${newest}"`, query)
    }
    // A fragment tells of its own rows: its page has heard of the others.
    for (const [query, position] of [
      ['?limit=1', newest],
      ['?event_type=none', 0],
      ['?event_type=none&above=7', 7],
    ] as const) {
      const { text } = await request(`${base}/log${query}`, { headers: FRAGMENT })
      t.match(text, `data-position="${position}"`, `the fragment of ${query}`)
    }
  })

  await t.test('the rows above an event, with the filters of the page', async (t) => {
    const cases: readonly (readonly [string, (event: Event) => boolean])[] = [
      [`above=${middle.id}`, ({ id }) => id > middle.id],
      [`above=${middle.id}&since=1`, ({ id }) => id > middle.id],
      [`above=1&since=${middle.id}`, ({ id }) => id >= middle.id],
      [
        `above=${middle.id}&provider=generic:ci`,
        ({ id, provider }) => id > middle.id && provider === 'generic:ci',
      ],
      [`above=${Math.max(...all)}`, () => false],
      ['above=9007199254740993', () => false],
      ['above=', () => true],
    ]
    for (const [query, passes] of cases) {
      t.same((await list(`?limit=200&${query}`)).ids, ids(passes), query)
    }
    const { next } = await list(`?limit=1&above=${middle.id}`)
    t.notMatch(next, 'above', 'the next page goes on below')
  })

  await t.test('refused queries', async (t) => {
    const bad = {
      limit: ['0', '201', 'x', '1.5', '-1', '1e2', '0x10'],
      since: [
        ...['yesterday', '2026-13-01T00:00:00Z', '-5', '1.5', '0000-01-01', '2026-02-30'],
        ...['2026-02-31T00:00:00Z', '9999-12-31T23:59:59-12:00', '9223372036854775808'],
      ],
      cursor: [...['zzz', '%3Cb%3E', cursor({}), cursor([]), cursor(['x']), cursor([1, 1])]],
    }
    const notAnId = ['x', '-1', '1.5', '%00']
    const rows = Object.entries({ ...bad, above: notAnId, open: notAnId }).flatMap(
      ([field, values]) =>
        values.map((value): Refusal => {
          const text = new RegExp(`\\b${field}\\b`)
          return [`GET /log?${field}=${value}`, 400, undefined, text]
        }),
    )
    await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
      ...rows,
      ['GET /log?rejected=1&cursor=zzz', 400, undefined, /cursor/],
      ['GET /log?rejected=1&limit=0', 400, undefined, /limit/],
    ])
  })
})

await t.test('pages stay whole while events come in', async (t: Test) => {
  let count = 0
  const some = async (n: number): Promise<readonly number[]> => {
    const bodies = Array.from({ length: n }, () => JSON.stringify({ count: (count += 1) }))
    const acks = await Promise.all(bodies.map((body) => deliver(base, 'code_host', body)))
    return acks.map((ack) => ack.json<{ id: number }>().id)
  }
  const old = await some(40)
  const seen: number[] = []
  let next: string | undefined = '/log?limit=7'
  while (next !== undefined) {
    const page: Page = await list(next.replace('/log', ''))
    seen.push(...page.ids)
    next = page.next
    if (next !== undefined) await some(3)
  }
  const wanted = old.toSorted((a, b) => b - a)
  t.same(
    seen.filter((id) => old.includes(id)).toSorted((a, b) => b - a),
    wanted,
    'each old event exactly once',
  )
  t.equal(new Set(seen).size, seen.length, 'and nothing twice')
})

await t.test('the page of an event', async (t: Test) => {
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
      t.notMatch(text, /id="raw-payload"|\?raw=1/, `${what}: not indented`)
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
    const long = await store(flat)
    t.match(await page(long), /too much of this JSON for a tree.*<code>\[\n  \{/s)
    t.match(await page(long), `href="/log/${long}?raw=1"`, 'a long one is not there twice')
    const raw = await request(`${base}/log/${long}?raw=1`)
    t.match(raw.text, '<code>[{&quot;a&quot;:', 'as it was sent')
  })

  await t.test('the copied command has no character that a terminal obeys', async (t) => {
    const id = await store('{}', { 'X-Odd': 'a\u009b201~b', "X-It's": "c'd; $(e)" })
    const { text } = await request(`${base}/log/${id}?tab=curl`)
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

  await t.test('a row shows the beginning of the payload on one line', async (t) => {
    const cases: readonly (readonly [string | Uint8Array, string])[] = [
      ['{"hello":"wörld"}', 'hello: wörld'],
      ['{\n  "a": 1,\r\n\t"b": {"c": 2}\n}\n', 'a: 1 · c: 2'],
      ['[1,\u00a02]', '[1, 2]'],
      ['{}', '{}'],
      ['a=1&b=<b>\u001b[31m', 'a=1&b=<b> [31m'],
      ['', 'empty'],
      ['  \n ', ''],
      [Buffer.from([0xff, 0xfe, 0x0a]), 'binary, 3 B'],
      ['text\0with a zero byte', 'binary, 21 B'],
      [Buffer.from('cut ü').subarray(0, 5), 'binary, 5 B'],
      ['x'.repeat(120), 'x'.repeat(120)],
      ['x'.repeat(121), `${'x'.repeat(120)}…`],
      // A character of two or four bytes lies across the end of what is read.
      [`a${'ü'.repeat(1_000_000)}`, `a${'ü'.repeat(119)}…`],
      [`a${'🦄'.repeat(1_000)}`, `a${'🦄'.repeat(74)}…`],
      [`${' '.repeat(1_000)}x`, '…'],
      [Buffer.concat([Buffer.from('x'.repeat(400)), Buffer.from([0xff])]), `${'x'.repeat(120)}…`],
    ]
    for (const [body, preview] of cases) {
      const id = await store(body)
      for (const headers of [{}, FRAGMENT]) {
        const { text } = await request(`${base}/log?limit=1`, { headers })
        const what = `${body.length}: ${String(body).slice(0, 20)}`
        t.same(previewsIn(text), [[id, preview]], what)
      }
    }
    t.same(previewsIn((await request(`${base}/`)).text)[0]?.[1], `${'x'.repeat(120)}…`)
  })

  await t.test('fifty rows take less than 64 KB', async (t) => {
    const item = { id: 'evt_1MqqbKLt4dXK03v5', object: 'event', api_version: '2026-03-31' }
    const body = JSON.stringify({ ...item, data: { object: { id: 'sub_1Mowv4Lt', items: [] } } })
    const headers = { 'X-Event-Type': 'customer.subscription.trial_will_end' }
    for (let count = 0; count < 50; count++) await store(body, headers)
    const { text } = await request(`${base}/log`)
    t.equal(idsIn(text).length, 50)
    t.ok(Buffer.byteLength(text) < 64_000, `${Buffer.byteLength(text)} bytes`)
  })

  await t.test('an event stands beside the log', async (t) => {
    const id = await store('{"beside":"the log"}', { 'X-Event-Type': 'opened' })
    const page = await request(`${base}/log?limit=2&open=${id}`)
    t.equal(idsIn(page.text).length, 2)
    t.match(page.text, `data-open="${id}"`)
    t.match(page.text, /id="log-open".*&quot;beside&quot;/s)
    t.match(nextOf(page.text), `open=${id}`, 'the next page has it, too')
    const gone = await request(`${base}/log?open=999999`)
    t.equal(gone.status, 200)
    t.match(gone.text, 'This event was removed by retention.')
    t.match((await request(`${base}/log`)).text, 'data-open="0"')
  })

  await t.test('there is no such event', async (t) => {
    const ids = [
      ...['999999', '0', 'abc', '1.5', '-1', '1e3', '%31x'],
      ...['9007199254740993', '99999999999999999999'],
    ]
    const rows = ids.flatMap((id): readonly Refusal[] => [
      [`GET /log/${id}`, 404],
      [`GET /log/${id}/payload`, 404],
    ])
    await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, rows)
  })
})

await t.test('the list of rejected deliveries', async (t: Test) => {
  const before = await eventIds(base)
  await addProvider(base, 'ci')
  await addProvider(base, 'cd')
  for (const name of ['ci', 'cd', 'ci', 'ci']) {
    const refused = await post(base, `generic/${name}`, '{}', { Authorization: 'Bearer wrong' })
    t.equal(refused.status, 403)
  }
  await until(async () => (await rejected('')).length === 4, 'four refusals to be stored')
  t.same(await rejected(''), ['generic:ci', 'generic:ci', 'generic:cd', 'generic:ci'])
  t.same(await rejected('&provider=generic:cd'), ['generic:cd'])
  const first = await request(`${base}/log?rejected=1&limit=3`, {
    headers: { 'HX-Request': 'true' },
  })
  t.notMatch(first.text, /<!doctype/i)
  const next = /href="(\/log\?[^"]*cursor=[^"]*)"/.exec(first.text)?.[1]?.replaceAll('&amp;', '&')
  t.same(await rejected('', next), ['generic:ci'], 'the oldest is on the next page')
  t.same(await eventIds(base), before, 'none was stored as an event')
})

// Last: it takes a table away.
await t.test('a fragment does not read the providers', async (t) => {
  await postgres.query(env, 'alter table hooks.providers rename to providers_away')
  for (const path of ['/log', '/log?rejected=1']) {
    t.equal((await request(base + path, { headers: FRAGMENT })).status, 200, path)
    t.equal((await request(base + path)).status, 500, 'the form of a page has it')
  }
})

type Page = { readonly ids: readonly number[]; readonly next: string | undefined }

async function list(query: string): Promise<Page> {
  const { status, text } = await request(`${base}/log${query}`)
  if (status !== 200) throw new Error(`GET /log${query} answered ${status}, expected 200`)
  return { ids: idsIn(text), next: nextOf(text) }
}

function idsIn(text: string): readonly number[] {
  return [...text.matchAll(/data-id="(\d+)"/g)].map((match) => Number(match[1]))
}

/** Ids and previews of the rows of a page. */
function previewsIn(text: string): readonly (readonly [number, string])[] {
  const rows = text.matchAll(/<tr [^>]*data-id="(\d+)".*?class="preview"[^>]*>(.*?)<\/td>/gs)
  return [...rows].map(([, id, cell = '']) => {
    return [Number(id), plain(cell)]
  })
}

function nextOf(text: string): string | undefined {
  return /href="(\/log\?[^"]*cursor=[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&')
}

function newestFirst(a: Event, b: Event): number {
  return b.received_at.getTime() - a.received_at.getTime() || b.id - a.id
}

/** The same instant as a clock two hours east of Greenwich shows it. */
function inZone(at: Date): string {
  return new Date(at.getTime() + 7_200_000).toISOString().replace('Z', '+02:00')
}

/** Providers of the refused deliveries on a page, newest first. */
async function rejected(query: string, path?: string): Promise<readonly string[]> {
  const { status, text } = await request(base + (path ?? `/log?rejected=1&limit=50${query}`))
  if (status !== 200) throw new Error(`the log answered ${status}, expected 200`)
  const table = /<tbody.*?<\/tbody>/s.exec(text)?.[0] ?? ''
  return [...table.matchAll(/>\s*(generic:\w+)\s*</g)].map((match) => match[1] ?? '')
}
