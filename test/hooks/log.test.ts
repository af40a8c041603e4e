import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'
import { deliver, eventIds, startHooks } from '../helpers/signing-setup.ts'

type Event = { id: number; provider: string; event_type: string | null; received_at: Date }

const FRAGMENT = { 'HX-Request': 'true' }

// Five events share each instant, and later ids are older, so that neither order gives the other.
const SEED = `
insert into hooks.events (provider, event_type, trust_mode, verified, headers, payload, body_hash, received_at)
select (array['code_host', 'generic:ci', 'generic:cd'])[1 + n % 3],
       (array['push', 'deploy', null, 'push'])[1 + n % 4],
       'open', false, '{}', 'x', '\\x00', date_trunc('second', now()) - (n / 5) * interval '1 minute'
  from generate_series(1, 60) as n`
const STORED = 'select id::int, provider, event_type, received_at from hooks.events'

await eachBackend(t, 'GET /log', async (t: Test, backend) => {
  const env = await backend.env(t)
  await backend.query(env, SEED)
  const rows = await backend.query(env, STORED)
  const stored = rows.map((row) => row as Event).toSorted(newestFirst)
  const ids = (passes: (event: Event) => boolean): readonly number[] =>
    stored.filter(passes).map(({ id }) => id)
  const all = ids(() => true)
  const middle = stored[29] ?? stored[0]
  if (middle === undefined) throw new Error('nothing was stored, expected 60 events')
  const server = await startServer(t, { services: ['hooks'], env })
  const base = server.hooks

  await t.test('newest first, ids decide between equal times', async (t) => {
    const first = await list(base, '')
    t.same(first.ids, all.slice(0, 50), 'fifty are the default')
    const second = await list(base, first.next?.replace('/log', '') ?? '')
    t.same(second.ids, all.slice(50))
    t.equal(second.next, undefined, 'the last page leads nowhere')
    t.same((await list(base, '?limit=1')).ids, all.slice(0, 1))
    t.same((await list(base, '?limit=60')).ids, all)
    t.equal((await list(base, '?limit=60')).next, undefined, 'exactly full is the last page')
    t.same((await list(base, '?limit=200')).ids, all)
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
      ['provider=&event_type=&since=&cursor=&limit=200', () => true],
      ['since=9223372036854775807', () => false],
      ['since=2028-02-29', () => false],
    ]
    for (const [query, passes] of cases) {
      t.same((await list(base, `?limit=200&${query}`)).ids, ids(passes), query)
    }
    const first = await list(base, '?limit=4&provider=generic:ci')
    const second = await list(base, first.next?.replace('/log', '') ?? '')
    const own = ids(({ provider }) => provider === 'generic:ci')
    t.same([...first.ids, ...second.ids], own.slice(0, 8), 'the next page keeps the filter')
  })

  const cursor = (value: unknown): string =>
    `cursor=${Buffer.from(JSON.stringify(value)).toString('base64url')}`

  await t.test('below all that is kept there is nothing older', async (t) => {
    for (const query of [cursor([1, 1]), `rejected=1&${cursor([1])}`]) {
      const { text } = await request(`${base}/log?limit=5&${query}`)
      t.match(text, 'Nothing older is kept.', query)
      t.match(text, /id="log-more-link"[^>]*>No older entries\./, 'for the link that led here')
      t.notMatch(text, 'No event was received')
    }
  })

  await t.test('the page says from where on new events are news', async (t) => {
    const newest = Math.max(...all)
    t.match((await request(`${base}/log?limit=1`)).text, `data-live="${newest}"`)
    t.notMatch((await request(`${base}/log`)).text, 'data-log-searches')
    t.match(
      (await request(`${base}/log?text=a`, { headers: { Referer: base } })).text,
      'data-log-searches',
    )
  })

  await t.test('what is refused', async (t) => {
    const bad = {
      limit: [
        'limit=0',
        'limit=201',
        'limit=x',
        'limit=1.5',
        'limit=-1',
        'limit=1e2',
        'limit=0x10',
      ],
      since: [
        'since=yesterday',
        'since=2026-13-01T00:00:00Z',
        'since=-5',
        'since=1.5',
        'since=0000-01-01',
        'since=2026-02-30',
        'since=2026-02-31T00:00:00Z',
        'since=9999-12-31T23:59:59-12:00',
        'since=9223372036854775808',
      ],
      cursor: [
        'cursor=zzz',
        'cursor=%3Cb%3E',
        cursor({}),
        cursor([]),
        cursor([1, 'x']),
        cursor(['', 1]),
      ],
    }
    for (const [field, queries] of Object.entries(bad)) {
      for (const query of queries) {
        const { status, headers, ...response } = await request(`${base}/log?${query}`)
        t.equal(status, 400, query)
        t.equal(headers['content-type'], 'application/problem+json')
        t.match(response.json(), {
          type: 'about:blank',
          title: 'Bad Request',
          status: 400,
          detail: new RegExp(`\\b${field}\\b`),
          instance: '/log',
        })
      }
    }
    const browser = await request(`${base}/log?limit=0`, { headers: { Accept: 'text/html' } })
    t.match(browser, {
      status: 400,
      headers: { 'content-type': /^text\/html/ },
      text: /<!doctype/i,
    })
  })
})

await eachBackend(t, 'pages stay whole while events come in', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
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
    const page: Page = await list(base, next.replace('/log', ''))
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

t.test('a fragment asks for no list of senders', async (t) => {
  const [, postgres] = backends
  const { base, env } = await startHooks(t, postgres)
  await postgres.query(env, 'alter table hooks.providers rename to providers_away')
  for (const path of ['/log', '/log?rejected=1']) {
    t.equal((await request(base + path, { headers: FRAGMENT })).status, 200, path)
    t.equal((await request(base + path)).status, 500, 'the form of a page has it')
  }
})

type Page = { readonly ids: readonly number[]; readonly next: string | undefined }

async function list(base: string, query: string): Promise<Page> {
  const { status, text } = await request(`${base}/log${query}`)
  if (status !== 200) throw new Error(`GET /log${query} answered ${status}, expected 200`)
  return { ids: idsIn(text), next: nextOf(text) }
}

function idsIn(text: string): readonly number[] {
  return [...text.matchAll(/data-id="(\d+)"/g)].map((match) => Number(match[1]))
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
