import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint, callTool, legacy, META, MODERN, postRaw } from '../helpers/mcp.ts'
import type { Endpoint, Json } from '../helpers/mcp.ts'
import { run } from '../helpers/postgres.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

const LIST = 'list_webhook_events'
const READERS = 12
const WITNESSES = 4
const DELIVERIES = 40

/** The ids of the newest events, as the tool lists them. */
async function list(endpoint: Endpoint, limit: number): Promise<readonly number[]> {
  const result = await callTool(endpoint, LIST, { limit })
  const { events } = result['structuredContent'] as unknown as { events: { id: number }[] }
  return events.map(({ id }) => id)
}

await onPostgres(t, 'calls that share an answer', async (t: Test, backend) => {
  const { base } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  const endpoint = await addEndpoint(base, 'agent')
  const send = async (): Promise<number> => (await post(base, 'generic/lan', '{}')).json<Ack>().id
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
      for (let n = 0; n < DELIVERIES; n++) {
        const id = await send()
        if (!(await list(endpoint, 10)).includes(id)) missing.push(id)
        calls++
      }
      return missing
    }
    const readers = Array.from({ length: READERS }, read)
    const missing = await Promise.all(Array.from({ length: WITNESSES }, witness))
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
  const [, postgres] = backends
  const env = await postgres.env(t)
  const url = String(env['DATABASE_URL'])
  const proxy = await startTcpProxy(t, url)
  const through = { ...env, DATABASE_URL: proxy.through(url) }
  const slow = (await startServer(t, { services: ['hooks'], env: through })).hooks
  const quick = (await startServer(t, { services: ['hooks'], env: { DATABASE_URL: url } })).hooks
  await addProvider(quick, 'lan', { open: true })
  const endpoint = await addEndpoint(slow, 'agent')
  const send = async (): Promise<number> => (await post(quick, 'generic/lan', '{}')).json<Ack>().id
  const before = await send()

  /** A call whose query is over and whose answer is held up; undefined where its connection did not know the statement. */
  async function heldUp(): Promise<{ readonly answer: Promise<readonly number[]> } | undefined> {
    // Connections that know the statement run it without a question that would have to be answered.
    await Promise.all([1, 2, 3, 4, 5].map((limit) => list(endpoint, limit)))
    // Longer than an answer is given again where another process has stored something.
    await pause(150)
    const [now] = await run(url, 'select clock_timestamp()::text as at')
    proxy.stall('to-client')
    const answer = list(endpoint, 5)
    const isOver = async (): Promise<boolean> => {
      const rows = await run(
        url,
        `select state from pg_stat_activity where datname = current_database()
          and query like '%order by received_at desc%' and query_start > '${String(now?.['at'])}'`,
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
  const later = await send()
  const calls = [list(endpoint, 5), list(endpoint, 5)]
  // Needs no database: with its answer, the calls before it have come in.
  await legacy(endpoint, 'ping')
  await proxy.pass()
  t.same(await first.answer, [before], 'the first was asked before the delivery')
  t.same(await Promise.all(calls), [
    [later, before],
    [later, before],
  ])
})
