import { get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { t } from 'tap'
import type { Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { backends } from '../helpers/backends.ts'
import { addProvider, deliver, post, startHooks, type Ack } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { refuseAll } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const { base, env } = await startHooks(t, postgres)
const api = apiOf(base)
await addProvider(base, 'ci', { open: true })

async function send(body: string | Uint8Array, type: string): Promise<number> {
  return (await post(base, 'generic/ci', body, { 'X-Event-Type': type })).json<Ack>().id
}

function linesOf(text: string): readonly { id: number }[] {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line))
}

const first = await send('{"text":"line\\nbreak"}', 'order.made')
const binary = await send(Buffer.from([0xff, 0x00, 0x0a]), 'bytes')
const signed = (await deliver(base, 'code_host', '{"a":1}')).json<Ack>().id

await t.test('a line for each event, as the API gives it', async (t: Test) => {
  const { status, headers, text } = await request(`${base}/log/export`)
  t.equal(status, 200)
  t.match(headers, {
    'content-type': 'application/x-ndjson',
    'content-disposition': 'attachment; filename="events.ndjson"',
    'cache-control': 'no-store',
    'cross-origin-resource-policy': 'same-origin',
  })
  const events = await Promise.all(
    [signed, binary, first].map(async (id) => (await api('GET', `/events/${id}`)).json),
  )
  t.same(linesOf(text), events)
  const agent = await addEndpoint(base, 'agent')
  const program = await apiOf(base, agent.token)('GET', '/events/export?text=line')
  t.same(linesOf(program.text), [events[2]])
  t.equal((await request(`${base}/log/export?event_type=nothing`)).text, '')
  const head = await request(`${base}/log/export`, { method: 'HEAD' })
  t.match(head, { status: 200, text: '' })
})

await t.test('all that the filters choose, over many pages', async (t: Test) => {
  await postgres.query(
    env,
    `insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:many', 3, '[]', convert_to(repeat('x', 20000), 'UTF8'), now()
       from generate_series(1, 450)`,
  )
  const { text } = await request(`${base}/log/export?provider=generic:many&limit=3`)
  const ids = linesOf(text).map(({ id }) => id)
  t.equal(ids.length, 450)
  t.same(
    ids,
    ids.toSorted((a, b) => b - a),
    'newest first',
  )
  const found = await request(`${base}/api/v1/events/export?provider=generic:many&text=xx`, {
    headers: { 'HX-Request': 'true' },
  })
  t.same(
    linesOf(found.text).map(({ id }) => id),
    ids,
  )
})

await t.test('refused', async (t: Test) => {
  const call = 'GET /api/v1/events/export'
  const token = { authorization: 'Bearer wrong' }
  await refuseAll(
    t,
    { service: 'hooks', base, state: async () => (await api('GET', '/events')).json },
    [
      [{ call, headers: token }, 401],
      [`${call}?text=x`, 403, undefined, /HX-Request/],
      ['GET /log/export?json=a%3D1', 403, undefined, /HX-Request/],
      ['GET /log/export?until=x', 400, undefined, /until/],
      [{ call: 'GET /log/export', headers: { host: 'evil.example' } }, 403],
      ['POST /log/export', 405],
    ],
  )
})

// Last: it takes a table away.
await t.test('a client that reads slowly, and an end that is none', async (t: Test) => {
  const rows = 60
  await postgres.query(
    env,
    `insert into hooks.events (provider, trust, headers, payload, received_at)
     select 'generic:large', 3, '[]', convert_to(repeat('x', 1000000), 'UTF8'), now()
       from generate_series(1, ${rows})`,
  )
  const opened = Promise.withResolvers<IncomingMessage>()
  get(`${base}/log/export?provider=generic:large`, { agent: false }, opened.resolve)
  const incoming = await opened.promise
  t.equal(incoming.statusCode, 200)
  // Nothing is read here, so the server waits, and what is still in the table can be taken away.
  await postgres.query(env, 'alter table hooks.events rename to events_away')
  let bytes = 0
  let broken = false
  incoming.on('data', (chunk: Buffer) => (bytes += chunk.length))
  incoming.on('error', () => (broken = true))
  await until(() => broken, 'the connection to break off')
  t.ok(bytes < rows * 1_000_000, `${bytes} bytes came, not all`)
  await postgres.query(env, 'alter table hooks.events_away rename to events')
})
