import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint, callTool, errorOf, META, MODERN, modern } from '../helpers/mcp.ts'
import type { Endpoint, Json } from '../helpers/mcp.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, post, postForm, startHooks } from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'
import { until } from '../helpers/until.ts'

const STREAM = { Accept: 'application/json, text/event-stream' }
const WAIT = 'wait_for_webhook_event'

/** How many calls of the tool have ended, by the metrics. */
async function ended(base: string): Promise<number> {
  const { text } = await request(`${base}/metrics`)
  const counts = text.matchAll(/gatehouse_hooks_tool_calls_total\{tool="wait_for[^}]*\} (\d+)/g)
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

/**
 * Sends events until the wait is over: it can't be seen from outside from when on one waits. Gives the
 * wait's answer and the ids of what was sent.
 */
async function sendUntil(
  wait: Promise<Json>,
  send: () => Promise<number>,
): Promise<{ result: Json; ids: readonly number[] }> {
  const ids: number[] = []
  let over = false
  const done = wait.finally(() => (over = true))
  await until(async () => {
    if (!over) ids.push(await send())
    return over
  }, 'the wait to end')
  return { result: await done, ids }
}

await eachBackend(t, 'waiting', async (t: Test, backend) => {
  const { base, env } = await startHooks(t, backend)
  await addProvider(base, 'lan', { open: true })
  const endpoint = await addEndpoint(base, 'agent')
  const send = async (type: string): Promise<number> => {
    const headers = { 'X-Event-Type': type }
    return (await post(base, 'generic/lan', '{}', headers)).json<Ack>().id
  }

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
    let turn = 0
    const { result } = await sendUntil(wait, () => send(turn++ % 3 === 2 ? 'wanted' : 'noise'))
    t.match(result, { structuredContent: { event: { event_type: 'wanted' } } })
    const none = { timeout_s: 1, provider: 'generic:nobody' }
    const { result: nothing } = await sendUntil(callTool(endpoint, WAIT, none, STREAM), () =>
      send('wanted'),
    )
    t.match(nothing, { structuredContent: { event: null } })
  })

  await t.test('the time is bounded', async (t) => {
    const answer = await callTool(endpoint, WAIT, { timeout_s: 1 }, STREAM)
    t.same(answer['structuredContent'], { event: null })
    for (const timeout_s of [0, 56, 1.5, '5', null]) {
      const { code } = errorOf(await callTool(endpoint, WAIT, { timeout_s }, STREAM))
      t.equal(code, 'invalid_argument', String(timeout_s))
    }
  })

  if (backend.name === 'postgres') {
    await t.test('an event that another instance received counts as well', async (t) => {
      const second = await startServer(t, { services: ['hooks'], env })
      const elsewhere = { ...endpoint, url: endpoint.url.replace(base, second.hooks) }
      const wait = callTool(elsewhere, WAIT, { timeout_s: 55 }, STREAM)
      const { result, ids } = await sendUntil(wait, () => send('noise'))
      const { event } = result['structuredContent'] as unknown as { event: { id: number } }
      t.ok(ids.includes(event.id))
    })
  }
})

/** A wait under way, over a connection that can be cut. */
type OpenWait = { readonly cut: () => void; readonly answer: Promise<string> }

/** Starts a wait that no event ends. */
function startWait(
  { url, token }: Endpoint,
  accept: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const params = { _meta: META, name: WAIT, arguments: { timeout_s: 55 } }
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
  // A cut connection is what the test wants; who looks at the answer sees its failure there.
  answer.catch(() => undefined)
  return { cut: () => controller.abort(), answer }
}

t.test('what ends a wait early, and how many there may be', async (t) => {
  const [embedded] = backends
  const { base, server } = await startHooks(t, embedded)
  const endpoint = await addEndpoint(base, 'agent')
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

  const before = await ended(base)
  for (const { cut } of waits.slice(0, 4)) cut()
  await until(async () => (await ended(base)) >= before + 4, 'the four waits to end')
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
  await until(async () => !(await limited(plain)), 'those who left to give them back')

  const revoked = await openWait(other)
  t.equal((await postForm(base, '/settings/endpoints/other/revoke', {})).status, 200)
  let answer = ''
  void revoked.answer.then((text) => (answer = text))
  await until(() => answer, 'the wait of the revoked token to end')
  t.match(answer, /"event":null/, 'a revoked token waits no longer')

  await server.stop()
  for (const { answer } of waits.slice(4)) {
    t.match(await answer, /"structuredContent":\{"event":null\}/, 'a stopping server answers')
  }
})
