import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import {
  META,
  MODERN,
  addEndpoint,
  callTool,
  errorOf,
  legacy,
  modern,
  postRaw,
} from '../helpers/mcp.ts'
import type { Endpoint, Json } from '../helpers/mcp.ts'
import { run } from '../helpers/postgres.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, post, postForm, startHooks } from '../helpers/hooks.ts'
import type { Ack } from '../helpers/hooks.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

const LIST = 'list_webhook_events'
const [, postgres] = backends
/** What a wait gives. */
interface Waited {
  event: { id: number } | null
  next_cursor: number
  gap: { requested: number; oldest: number; skipped: number } | null
}

const STREAM = { Accept: 'application/json, text/event-stream' }
const WAIT = 'wait_for_webhook_event'

const { base, env, server } = await startHooks(t, postgres)
await addProvider(base, 'lan', { open: true })

async function send(type: string): Promise<number> {
  return (await post(base, 'generic/lan', '{}', { 'X-Event-Type': type })).json<Ack>().id
}

/** The ids of the newest events, as the tool lists them. */
async function list(endpoint: Endpoint, limit: number): Promise<readonly number[]> {
  const result = await callTool(endpoint, LIST, { limit })
  const { events } = result['structuredContent'] as unknown as { events: { id: number }[] }
  return events.map(({ id }) => id)
}

/** How many calls of the tool have ended, by the metrics. */
async function ended(): Promise<number> {
  const { text } = await request(`${base}/metrics`)
  const counts = text.matchAll(/gatehouse_hooks_tool_calls_total\{tool="wait_for[^}]*\} (\d+)/g)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/**
 * Sends events until the wait is over, because nobody outside sees when it begins. Returns the answer of
 * the wait and the ids of the events.
 */
async function sendUntil<T>(
  wait: Promise<T>,
  send: () => Promise<number>,
): Promise<{ result: T; ids: readonly number[] }> {
  const ids: number[] = []
  let over = false
  const done = wait.finally(() => (over = true))
  await until(async () => {
    if (!over) ids.push(await send())
    return over
  }, 'the wait to end')
  return { result: await done, ids }
}

await t.test('waiting for an event', async (t: Test) => {
  const endpoint = await addEndpoint(base, 'agent')

  await t.test('the next event ends the wait, as a stream and as one answer', async (t) => {
    const before = await send('noise')
    for (const headers of [STREAM, {}]) {
      const wait = callTool(endpoint, WAIT, { timeout_s: 55 }, headers)
      const { result, ids } = await sendUntil(wait, () => send('noise'))
      const { event } = result['structuredContent'] as unknown as { event: { id: number } }
      t.ok(event.id > before, 'nothing of before the call')
      t.ok(ids.includes(event.id))
      const [text, notice] = result['content'] as unknown as { text: string }[]
      t.same(JSON.parse(text?.text ?? ''), result['structuredContent'])
      t.match(notice?.text, /untrusted/)
    }
  })

  await t.test('only a matching event ends it', async (t) => {
    const args = { timeout_s: 55, provider: 'generic:lan', event_type: 'wanted' }
    const wait = callTool(endpoint, WAIT, args, STREAM)
    let sent = 0
    const { result } = await sendUntil(wait, () => send(sent++ % 3 === 2 ? 'wanted' : 'noise'))
    t.match(result, { structuredContent: { event: { event_type: 'wanted' } } })
    const none = { timeout_s: 1, provider: 'generic:nobody' }
    const { result: nothing } = await sendUntil(callTool(endpoint, WAIT, none, STREAM), () =>
      send('wanted'),
    )
    t.match(nothing, { structuredContent: { event: null } })
  })

  await t.test('the time is bounded', async (t) => {
    const answer = await callTool(endpoint, WAIT, { timeout_s: 1 }, STREAM)
    t.match(answer['structuredContent'], { event: null, next_cursor: Number, gap: null })
    for (const timeout_s of [0, 56, 1.5, '5', null]) {
      const { code } = errorOf(await callTool(endpoint, WAIT, { timeout_s }, STREAM))
      t.equal(code, 'invalid_argument', String(timeout_s))
    }
  })

  await t.test('with a cursor, nothing between two waits is missed', async (t) => {
    const wait = async (args: Readonly<Record<string, unknown>>) => {
      const result = await callTool(endpoint, WAIT, { timeout_s: 1, ...args }, STREAM)
      return result['structuredContent'] as unknown as Waited
    }
    const { next_cursor: start } = await wait({ provider: 'generic:nobody' })
    const first = await send('noise')
    const wanted = await send('wanted')
    const last = await send('noise')
    let cursor = start
    for (const id of [first, wanted, last]) {
      const { event, next_cursor, gap } = await wait({ cursor, timeout_s: 55 })
      t.same({ id: event?.id, next_cursor, gap }, { id, next_cursor: id, gap: null })
      cursor = next_cursor
    }
    t.same(await wait({ cursor }), { event: null, next_cursor: last, gap: null })
    t.equal((await wait({ cursor: start, event_type: 'wanted' })).event?.id, wanted)
    const none = await wait({ cursor: start, event_type: 'nothing' })
    t.same(none, { event: null, next_cursor: last, gap: null }, 'it goes on where it looked')
    t.ok(((await wait({ cursor: 0 })).event?.id ?? first) < first, '0 begins with the oldest')

    const restored = await wait({ cursor: last + 1_000 })
    const gap = { requested: last + 1_000, oldest: last + 1, skipped: 0 }
    t.same(restored, { event: null, next_cursor: last, gap }, 'an id of another database')
    await postForm(base, '/settings', { retention_max_rows: '2' })
    const pruned = { event: { id: wanted }, gap: { requested: 0, oldest: wanted } }
    await until(async () => (await wait({ cursor: 0 })).gap !== null, 'older events to go')
    t.match(await wait({ cursor: 0 }), pruned, 'what retention removed is named')
    await postForm(base, '/settings', { retention_max_rows: '50000' })
    for (const wrong of [-1, 1.5, '5', null, 2 ** 60]) {
      const answer = await callTool(endpoint, WAIT, { cursor: wrong }, STREAM)
      t.equal(errorOf(answer).code, 'invalid_argument', String(wrong))
    }
  })

  await t.test('an event that another instance received counts as well', async (t) => {
    const second = await startServer(t, { services: ['hooks'], env })
    const elsewhere = { ...endpoint, url: endpoint.url.replace(base, second.hooks) }
    const wait = callTool(elsewhere, WAIT, { timeout_s: 55 }, STREAM)
    const { result, ids } = await sendUntil(wait, () => send('noise'))
    const { event } = result['structuredContent'] as unknown as { event: { id: number } }
    t.ok(ids.includes(event.id))
  })
})

/** A wait under way, over a connection that can be cut. */
type OpenWait = { readonly cut: () => void; readonly answer: Promise<string> }

/** Starts a wait that no event ends. */
function startWait(
  { url, token }: Endpoint,
  accept: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const _meta = { ...META, progressToken: 1 }
  const params = { _meta, name: WAIT, arguments: { timeout_s: 55 } }
  return fetch(url, {
    method: 'POST',
    signal,
    headers: {
      ...accept,
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'MCP-Protocol-Version': MODERN,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': WAIT,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  })
}

/** The same as a stream: once the head of its answer is there, it has its place. */
async function openWait(endpoint: Endpoint): Promise<OpenWait> {
  const controller = new AbortController()
  const response = await startWait(endpoint, STREAM, controller.signal)
  const answer = response.text()
  // The test cuts connections: only callers that read the answer see the failure.
  answer.catch(() => undefined)
  return { cut: () => controller.abort(), answer }
}

await t.test('calls that share an answer', async (t: Test) => {
  const endpoint = await addEndpoint(base, 'readers')

  await t.test('a call after an acknowledged delivery shows it, under load', async (t) => {
    let over = false
    let calls = 0
    async function read(): Promise<void> {
      while (!over) {
        await list(endpoint, 10)
        calls++
      }
    }
    /** Gives the deliveries that were not shown. */
    async function witness(): Promise<readonly number[]> {
      const missing: number[] = []
      for (let n = 0; n < 20; n++) {
        const id = await send('note')
        if (!(await list(endpoint, 10)).includes(id)) missing.push(id)
        calls++
      }
      return missing
    }
    const readers = Array.from({ length: 6 }, read)
    const missing = await Promise.all(Array.from({ length: 2 }, witness))
    over = true
    await Promise.all(readers)
    t.same(missing.flat(), [])
    const { text } = await request(`${base}/metrics`)
    const counted = /tool_calls_total\{tool="list_webhook_events",outcome="ok"\} (\d+)/.exec(text)
    t.equal(Number(counted?.[1]), calls, 'each call is counted')
  })

  await t.test('each answer has the id of its own question', async (t) => {
    const ids = [1, 2, 'three', '"}', 'ä', 0, -1, Number.MAX_SAFE_INTEGER]
    const headers = {
      'MCP-Protocol-Version': MODERN,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': LIST,
    }
    const answers = await Promise.all(
      ids.map((id) => {
        const params = { _meta: META, name: LIST, arguments: {} }
        const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
        return postRaw(endpoint, body, headers)
      }),
    )
    const shown = answers.map((answer) => answer.json<Json>())
    t.same(
      shown.map(({ id }) => id),
      ids,
    )
    const results = new Set(shown.map(({ result }) => JSON.stringify(result)))
    t.equal(results.size, 1, 'and the same result')
    t.match(shown[0], { jsonrpc: '2.0', result: { resultType: 'complete', content: [{}, {}] } })
  })
})

await t.test('a call never waits for the answer of a query that began before it', async (t) => {
  const url = String(env['DATABASE_URL'])
  const proxy = await startTcpProxy(t, url)
  const through = { ...env, DATABASE_URL: proxy.through(url) }
  const slow = (await startServer(t, { services: ['hooks'], env: through })).hooks
  const endpoint = await addEndpoint(slow, 'slow')
  const before = await send('note')

  /** A call whose query is over and whose answer is held up; undefined where its connection did not know the statement. */
  async function heldUp(): Promise<{ readonly answer: Promise<readonly number[]> } | undefined> {
    // Connections that know the statement run it without a question that would have to be answered.
    // There are eight, and any of them may be next.
    await Promise.all(Array.from({ length: 16 }, (_, n) => list(endpoint, n + 1)))
    // Longer than an answer is given again where another process has stored something.
    await pause(150)
    const [now] = await run(url, 'select clock_timestamp()::text as at')
    proxy.stall('to-client')
    const answer = list(endpoint, 5)
    const isOver = async (): Promise<boolean> => {
      const rows = await run(
        url,
        `select state from pg_stat_activity where datname = current_database()
          and query like '%hooks.trust_mode(%order by e.id desc%' and query_start > '${String(now?.['at'])}'`,
      )
      return rows[0]?.['state'] === 'idle'
    }
    const over = await until(isOver, 'the query to be over', 2_000).catch(() => false)
    if (over) return { answer }
    await proxy.pass()
    await answer
    return undefined
  }
  const first = await until(heldUp, 'a query that is over, its answer held up', 60_000)
  const later = await send('note')
  const calls = [list(endpoint, 5), list(endpoint, 5)]
  // Needs no database: with its answer, the calls before it have come in.
  await legacy(endpoint, 'ping')
  await proxy.pass()
  t.equal((await first.answer)[0], before, 'the first was asked before the delivery')
  for (const ids of await Promise.all(calls)) t.same(ids.slice(0, 2), [later, before])
})

await t.test('a wait goes on while the database is away', async (t) => {
  const url = String(env['DATABASE_URL'])
  const proxy = await startTcpProxy(t, url)
  const through = { ...env, DATABASE_URL: proxy.through(url) }
  const { hooks: shaky } = await startServer(t, { services: ['hooks'], env: through })
  const endpoint = await addEndpoint(shaky, 'shaky')
  const stream = await startWait(endpoint, STREAM, AbortSignal.timeout(60_000))
  let text = ''
  async function read(): Promise<void> {
    for await (const chunk of stream.body ?? []) text += Buffer.from(chunk).toString()
  }
  const wait = read()
  // A wait begins with a query, which an outage would end; progress comes after it.
  await until(() => text.includes('notifications/progress'), 'the wait to be under way')
  proxy.refuse()
  proxy.reset()
  const missed = await send('note')
  await pause(1_000)
  await proxy.pass()
  const { ids } = await sendUntil(wait, () => send('note'))
  const [, id] = /"structuredContent":\{"event":\{"id":(\d+)/.exec(text) ?? []
  t.ok([missed, ...ids].includes(Number(id)), text)
})

await t.test('what ends a wait early, and how many there may be', async (t) => {
  const endpoint = await addEndpoint(base, 'waits')
  const other = await addEndpoint(base, 'other')
  const limited = async (from: Endpoint): Promise<boolean> => {
    const result = await callTool(from, WAIT, { timeout_s: 1 }, STREAM)
    return 'isError' in result && errorOf(result).code === 'rate_limited'
  }

  const waits = await Promise.all(Array.from({ length: 8 }, () => openWait(endpoint)))
  t.ok(await limited(endpoint), 'the ninth is refused')
  t.equal((await modern(endpoint, 'tools/list')).status, 200, 'other requests go on')
  t.match(await callTool(endpoint, 'list_providers'), { structuredContent: {} })
  t.equal(await limited(other), false, 'another endpoint has places of its own')

  const before = await ended()
  for (const { cut } of waits.slice(0, 4)) cut()
  await until(async () => (await ended()) >= before + 4, 'the four waits to end')
  t.equal(await limited(endpoint), false, 'a client that left gives its place back')

  const plain = await addEndpoint(base, 'plain')
  const json = { Accept: 'application/json' }
  const leave = new AbortController()
  const lone: Promise<unknown>[] = []
  const full = async (): Promise<boolean> => {
    for (let n = 0; n < 4; n++) lone.push(startWait(plain, json, leave.signal))
    return limited(plain)
  }
  await until(full, 'waits without a stream to have all places')
  leave.abort()
  await Promise.allSettled(lone)
  await until(async () => !(await limited(plain)), 'the disconnected clients to free them')

  const revoked = await openWait(other)
  t.equal((await postForm(base, '/settings/endpoints/other/revoke', {})).status, 200)
  let answer = ''
  void revoked.answer.then((text) => (answer = text))
  await until(() => answer, 'the wait of the revoked token to end')
  t.match(answer, /"event":null/, 'a revoked token waits no longer')

  await server.stop()
  for (const { answer } of waits.slice(4)) {
    t.match(await answer, /"structuredContent":\{"event":null,/, 'a stopping server answers')
  }
})
