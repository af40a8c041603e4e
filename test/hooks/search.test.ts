import postgres from 'postgres'
import { t } from 'tap'
import type { Test } from 'tap'
import { countAnswers } from '../helpers/answers.ts'
import { backends, eachBackend } from '../helpers/backends.ts'
import type { Owner } from '../helpers/owner.ts'
import { request } from '../helpers/http.ts'
import type { Response } from '../helpers/http.ts'
import { runCli } from '../helpers/cli.ts'
import { startServer } from '../helpers/server.ts'
import type { TestServer } from '../helpers/server.ts'
import { addEndpoint, callTool, errorOf } from '../helpers/mcp.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'
import type { Env } from '../helpers/program.ts'

const BODIES = {
  'first.type': '{"id":"evt_1","data":{"object":{"id":"obj_1","amount":12345678901234567890}}}',
  'second.type':
    '{"id":"evt_2","data":{"object":{"id":"obj_2","paid":true,"items":[{"sku":"a"},{"sku":"ü"}]}}}',
  'escaped.type': '{"data":{"object":{"id":"\\u006fbj_3"}},"text":"50% off \\u0000"}',
  'text.type': 'no JSON, but obj_1 stands in it',
  'bytes.type': Buffer.from([0xff, 0xfe, 0x00, 0x6f, 0x62, 0x6a]),
}

/** A server with an open provider that has received one event of each type. */
async function startWithEvents(t: Owner, env: Env): Promise<TestServer> {
  await runCli(['provider', 'add', 'search', '--open', '--enable'], { env })
  const server = await startServer(t, { env, services: ['hooks'] })
  for (const [type, body] of Object.entries(BODIES)) {
    const headers = { 'x-event-type': type }
    await request(`${server.hooks}/webhooks/generic/search`, { method: 'POST', headers, body })
  }
  return server
}

/** What a browser says of a page of this site, over plain http. */
function own(base: string): { readonly headers: { readonly Referer: string } } {
  return { headers: { Referer: `${base}/log` } }
}

/** Types of the events on the page that a query of the log gives, newest first. */
async function typesFound(server: TestServer, query: string): Promise<readonly string[]> {
  const { text } = await request(`${server.hooks}/log?${query}`, {
    headers: { 'hx-request': 'true' },
  })
  return [...text.matchAll(/>\s*([a-z]+\.type)\s*</g)].map((match) => match[1] ?? '')
}

await eachBackend(t, 'search', async (t: Test, backend) => {
  const env = await backend.env(t)
  const server = await startWithEvents(t, env)

  await t.test('text anywhere in the payload, as bytes', async (t) => {
    t.same(await typesFound(server, 'text=obj_1'), ['text.type', 'first.type'])
    t.same(await typesFound(server, `text=${encodeURIComponent('"ü"')}`), ['second.type'])
    t.same(await typesFound(server, 'text=%25'), ['escaped.type'], 'no character is a wildcard')
    t.same(await typesFound(server, 'text=nowhere'), [])
  })

  await t.test('a member of the JSON by its path and value', async (t) => {
    t.same(await typesFound(server, 'json=data.object.id=obj_1'), ['first.type'])
    t.same(await typesFound(server, 'json=id=evt_2'), ['second.type'])
    t.same(await typesFound(server, 'json=data.object.amount=12345678901234567890'), ['first.type'])
    t.same(await typesFound(server, 'json=data.object.paid=true'), ['second.type'])
    t.same(await typesFound(server, `json=${encodeURIComponent('data.object.items.1.sku=ü')}`), [
      'second.type',
    ])
    t.same(await typesFound(server, 'json=data.object.id=obj'), [], 'the whole value counts')
  })

  await t.test(
    'search and filters combine, and stand in the address of the next page',
    async (t) => {
      t.same(await typesFound(server, 'text=obj_1&event_type=first.type'), ['first.type'])
      t.same(await typesFound(server, 'text=obj_1&provider=generic:other'), [])
      const { text } = await request(`${server.hooks}/log?text=obj_1&limit=1`, own(server.hooks))
      const next =
        /href="(\/log\?[^"]*cursor=[^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&') ?? ''
      t.match(next, 'text=obj_1')
      t.same(await typesFound(server, next.slice(next.indexOf('?') + 1)), ['first.type'])
    },
  )

  await t.test('ErrSearch: a path without a value, and a search that is too long', async (t) => {
    for (const query of ['json=data.object', 'json=a..b=1', 'json==1', `text=${'x'.repeat(501)}`]) {
      const response = await request(`${server.hooks}/log?${query}`)
      t.equal(response.status, 400, query.slice(0, 20))
      t.equal(response.headers['content-type'], 'application/problem+json')
    }
  })

  await t.test('a payload that nests too deep has no member, and harms nobody', async (t) => {
    const store = async (type: string, inside: string): Promise<void> => {
      const headers = { 'x-event-type': type }
      const body = `{"deep":"1","in":${inside}}`
      await request(`${server.hooks}/webhooks/generic/search`, { method: 'POST', headers, body })
      await typesFound(server, 'json=deep=1')
    }
    for (const depth of [100_000, 90_000, 1_000_000, 5_000]) {
      await store('deep.type', '['.repeat(depth) + ']'.repeat(depth))
    }
    await store('wide.type', `[${'{},'.repeat(90_000)}0]`)
    await store('long.type', `[${'1,'.repeat(600_000)}0]`)
    t.same(await typesFound(server, 'json=deep=1'), ['wide.type', 'deep.type'], 'two of them')
  })

  await t.test('behind large payloads', async (t) => {
    const headers = { 'x-event-type': 'large.type' }
    for (let n = 0; n < 3; n++) {
      const body = `large${n} `.repeat(700_000)
      await request(`${server.hooks}/webhooks/generic/search`, { method: 'POST', headers, body })
    }
    t.same(await typesFound(server, 'text=obj_1'), ['text.type', 'first.type'])
    t.same(await typesFound(server, 'text=large1'), ['large.type'])
    t.same(await typesFound(server, 'json=id=evt_1'), ['first.type'])
  })

  await t.test(
    'the first MiB of a payload counts, which bounds what a text may cost',
    async (t) => {
      const body = `${'a'.repeat(1024 * 1024 - 6)}inside, outside${'a'.repeat(23 * 1024 * 1024)}`
      const headers = { 'x-event-type': 'huge.type' }
      await request(`${server.hooks}/webhooks/generic/search`, { method: 'POST', headers, body })
      t.same(await typesFound(server, 'text=inside'), ['huge.type'])
      t.same(await typesFound(server, 'text=outside'), [])
      // The worst there is: it fits everywhere but for its last byte.
      const worst = await request(`${server.hooks}/log?text=${'a'.repeat(499)}b`, own(server.hooks))
      t.equal(worst.status, 200)
      t.notMatch(worst.text, 'huge.type')
    },
  )

  await t.test('a page of another site may not search unseen', async (t) => {
    const status = async (query: string, site: string, kind: string): Promise<number> => {
      const headers = { 'Sec-Fetch-Site': site, 'Sec-Fetch-Dest': kind }
      const answer = await request(`${server.hooks}/log?${query}`, { headers })
      return answer.status
    }
    for (const kind of ['image', 'script', 'iframe', 'empty']) {
      t.equal(await status('text=obj_1', 'cross-site', kind), 403, kind)
      t.equal(await status('json=id=evt_2', 'same-site', kind), 403, kind)
      t.equal(await status('text=obj_1', 'same-origin', kind), 200, `${kind} of our own`)
      t.equal(await status('provider=chat', 'cross-site', kind), 200, `${kind} without a search`)
    }
    t.equal(await status('text=obj_1', 'cross-site', 'document'), 200, 'a link that is followed')
    t.equal(await status('text=obj_1', 'none', 'document'), 200, 'the address bar')
  })

  await t.test('over plain http a search must come from a page of this site', async (t) => {
    const host = new URL(server.hooks).host
    const status = async (query: string, headers: Record<string, string>): Promise<number> =>
      (await request(`${server.hooks}/log?${query}`, { headers })).status
    for (const query of ['text=obj_1', 'json=id=evt_2', 'rejected=1&text=obj_1']) {
      t.equal(await status(query, {}), 403, `${query}: no word of where it comes from`)
      for (const referer of ['http://evil.example/', `http://evil.example/?${host}`, host, 'x']) {
        t.equal(await status(query, { Referer: referer }), 403, `${query}: ${referer}`)
      }
      const otherPort = { Referer: 'http://127.0.0.1:1/log' }
      t.equal(await status(query, otherPort), 403, `${query}: another port`)
      t.equal(await status(query, { Referer: `http://${host}/log` }), 200, `${query}: our page`)
      t.equal(await status(query, { 'HX-Request': 'true' }), 200, `${query}: htmx`)
    }
    const foreign = { 'HX-Request': 'true', 'Sec-Fetch-Site': 'cross-site' }
    t.equal(await status('text=obj_1', { ...foreign, 'Sec-Fetch-Dest': 'empty' }), 403)
    t.equal(await status('provider=chat', {}), 200, 'the log without a search')
  })

  await t.test('a stream of one provider and type gets no other event', async (t) => {
    const stream = await openStream(
      t,
      `${server.hooks}/events?provider=generic:search&event_type=wanted.type`,
    )
    await stream.until((event) => event.event === 'status')
    for (const type of ['other.type', 'wanted.type', 'other.type', 'wanted.type']) {
      const headers = { 'x-event-type': type }
      await request(`${server.hooks}/webhooks/generic/search`, {
        method: 'POST',
        headers,
        body: '{}',
      })
    }
    const wanted = (): readonly string[] =>
      stream.events.filter(({ event }) => event === 'event-received').map(({ data }) => data)
    await stream.until(() => wanted().length === 2)
    t.ok(wanted().every((data) => data.includes('"wanted.type"')))
    const resumed = await openStream(t, `${server.hooks}/events?event_type=wanted.type`, {
      lastEventId: '0',
    })
    await resumed.until(({ id }) => id === stream.lastEventId)
    t.equal(resumed.events.filter(({ event }) => event === 'event-received').length, 2)
  })
})

t.test('a search by JSON where PostgreSQL is made to work in parallel', async (t) => {
  const [, postgres] = backends
  const env = await postgres.env(t)
  const server = await startWithEvents(t, env)
  await server.stop()
  // Named otherwise before PostgreSQL 16.
  await postgres.query(
    env,
    `do $$ declare name text; begin
       select s.name into name from pg_settings s
        where s.name in ('force_parallel_mode', 'debug_parallel_query');
       execute format('alter database %I set %I = on', current_database(), name);
     end $$`,
  )
  const again = await startServer(t, { env, services: ['hooks'] })
  t.same(await typesFound(again, 'json=data.object.id=obj_1'), ['first.type'])
})

t.test('a search by id ends where no event of those ids is left', async (t) => {
  const [, postgres] = backends
  // The newest id stands 5,000 places down, because its delivery took so long.
  const env = await needles(t, 35_000)
  const server = await startServer(t, { env, services: ['hooks'] })
  const { text } = await request(`${server.hooks}/log?text=needle&since=39999`, own(server.hooks))
  t.same(
    [...text.matchAll(/data-id="(\d+)"/g)].map((match) => match[1]),
    ['39999', '40000'],
  )
  t.match(text, 'No older entries')
  await server.stop()
  const looked = `select sum(idx_tup_read)::int as n from pg_stat_user_indexes where indexrelname = 'events_newest'`
  const rows = async (): Promise<number> => Number((await postgres.query(env, looked))[0]?.['n'])
  await until(async () => (await rows()) > 5_000, 'the figures of the server’s sessions')
  t.ok((await rows()) < 30_000, `${await rows()} rows were looked at`)
})

t.test('a search by id looks at a bounded part of the ids above it', async (t) => {
  const [, postgres] = backends
  // The newest id is the oldest event.
  const env = await needles(t, 0)
  // What retention looks at is no part of this.
  await postgres.query(env, 'update hooks.settings set retention_max_rows = 0')
  const server = await startServer(t, { env, services: ['hooks'] })
  const [row] = await postgres.query(
    env,
    'select extract(epoch from received_at)::float8 * 1000 as ms from hooks.events where id = 2500',
  )
  const cursor = Buffer.from(JSON.stringify([Math.floor(Number(row?.['ms'])), 1])).toString(
    'base64url',
  )
  const { text } = await request(
    `${server.hooks}/log?text=needle&since=3000&cursor=${cursor}`,
    own(server.hooks),
  )
  t.same(
    [...text.matchAll(/data-id="(\d+)"/g)].map((match) => match[1]),
    ['40000'],
    'what is beyond that part is found',
  )
  t.match(text, 'No older entries')
  await server.stop()
  const looked = `select sum(idx_tup_read)::int as n from pg_stat_user_indexes
                   where indexrelname = 'events_pkey'`
  const rows = async (): Promise<number> => Number((await postgres.query(env, looked))[0]?.['n'])
  await until(async () => (await rows()) > 5_000, 'the figures of the server’s sessions')
  t.ok((await rows()) < 20_000, `${await rows()} rows were looked at`)
})

t.test(
  'a line of searches ends before the database answers, and sooner for who leaves it',
  async (t) => {
    const [, server] = backends
    const env = await server.env(t)
    const { hooks } = await startWithEvents(t, env)
    const endpoint = await addEndpoint(hooks, 'agent')
    const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1 })
    t.teardown(() => sql.end())
    const search = (timeoutMs: number): Promise<Response> => {
      const headers = { 'hx-request': 'true' }
      return request(`${hooks}/log?text=obj_1`, { headers, timeoutMs })
    }

    await sql.begin(async (tx) => {
      await tx`lock table hooks.events in access exclusive mode`
      // The first step takes its deadline, 5 s; by then the others have waited as long.
      const waiting = Array.from({ length: 8 }, () => search(15_000))
      const calls = Array.from({ length: 3 }, () =>
        callTool(endpoint, 'list_webhook_events', { text: 'obj_1' }),
      )
      const leaving = Array.from({ length: 8 }, () => search(500))
      for (const { status } of await Promise.allSettled(leaving)) t.equal(status, 'rejected')
      const gone = async (): Promise<boolean> => (await countAnswers(hooks, '/log', 499)) === 8
      await until(gone, 'those who left to be out of the line', 3_000)
      const answers = await Promise.all(waiting)
      for (const { status } of answers) t.equal(status, 503)
      const late = answers.find(({ text }) => text.includes('Too many searches at once'))
      t.match(late?.headers, { 'retry-after': '2' }, 'who had no turn is told why')
      const errors = (await Promise.all(calls)).map(errorOf)
      t.match(
        errors.find(({ code }) => code === 'rate_limited'),
        { message: 'Too many searches at once; try again shortly.' },
      )
    })
    t.equal((await search(10_000)).status, 200, 'the line goes on')
  },
)

t.test('a search without a further turn gives what it has found', async (t) => {
  const [, server] = backends
  const env = await server.env(t)
  const { hooks } = await startServer(t, { env, services: ['hooks'] })
  await server.query(
    env,
    `insert into hooks.events (provider, trust_mode, verified, headers, payload, body_hash, received_at)
     select 'generic:search', 'open', false, '{}', convert_to(case n when 3000 then 'needle, slow' else 'hay' end, 'UTF8'), '\\x00',
            now() - interval '1 day' + n * interval '1 s'
       from generate_series(1, 3000) n`,
  )
  // Two of these take longer than a search waits, and one of them less.
  await server.query(
    env,
    `create or replace function hooks.payload_json(payload bytea) returns jsonb
     language plpgsql immutable strict parallel safe
     as $$ begin perform pg_sleep(3); return null; end $$`,
  )
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1 })
  t.teardown(() => sql.end())
  const search = (query: string): Promise<Response> => {
    const headers = { 'hx-request': 'true' }
    return request(`${hooks}/log?${query}`, { headers, timeoutMs: 30_000 })
  }
  const begun: Promise<Response>[] = []
  await sql.begin(async (tx) => {
    await tx`lock table hooks.events in access exclusive mode`
    begun.push(search('text=needle'))
    const waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    await until(async () => (await server.query(env, waits)).length > 0, 'its first step to begin')
    begun.push(search('json=slow=1'), search('json=slow=1'))
    // What comes after them has its answer: they stand in the line.
    await request(`${hooks}/favicon.ico`)
  })
  const [first, ...slow] = await Promise.all(begun)
  for (const { status } of slow) t.equal(status, 200)
  t.equal(first?.status, 200)
  t.match(first?.text, 'data-id="3000"')
  t.match(first?.text, /href="\/log\?text=needle&amp;cursor=/, 'and a way on')
})

/** A database of 40,000 events, a second apart, of which the newest id stands at another place by its time. */
async function needles(t: Test, placeOfNewest: number): Promise<Env> {
  const [, postgres] = backends
  const env = await postgres.env(t)
  await postgres.query(
    env,
    `insert into hooks.events (provider, trust_mode, verified, headers, payload, body_hash, received_at)
     select 'generic:search', 'open', false, '{}', 'needle', '\\x00',
            now() - interval '1 day' + (case n when 40000 then ${placeOfNewest} else n end) * interval '1 s'
       from generate_series(1, 40000) n`,
  )
  await postgres.query(env, 'analyze hooks.events')
  return env
}
