import { isDeepStrictEqual } from 'node:util'
import { t } from 'tap'
import { apiOf } from '../../helpers/api.ts'
import { backends, connectionTo } from '../../helpers/backends.ts'
import { metricOf } from '../../helpers/deliveries.ts'
import { addProvider, post, postForm, startHooks, store, type Bytes } from '../../helpers/hooks.ts'
import { request, type Response as Answer } from '../../helpers/http.ts'
import {
  META,
  MODERN,
  addEndpoint,
  callTool,
  errorOf,
  legacy,
  modern,
  postRaw,
  type Endpoint,
  type Json,
} from '../../helpers/mcp.ts'
import { attemptsOf, startReceiver } from '../../helpers/replays.ts'
import { startServer } from '../../helpers/server.ts'
import { startTcpProxy } from '../../helpers/tcp-proxy.ts'
import { until } from '../../helpers/until.ts'

// The tools of endpoints, one after the other, then calls that wait, and calls without a database.

type Args = Readonly<Record<string, unknown>>
/** A block of a result: text, or a link to a resource. */
type Block = { type: string; text: string; uri: string }
type Listed = { events: { id: number; preview?: string }[]; next_cursor: string | null }
type Contents = { uri: string; mimeType: string; text?: string; blob?: string }
type Gap = { requested: number; oldest: number; skipped: number }
/** What a wait gives. */
type Waited = { event: { id: number } | null; next_cursor: number; gap: Gap | null }

const LIST = 'list_webhook_events'
const GET = 'get_webhook_event'
const SEARCH = 'search_webhook_events'
const STATS = 'get_webhook_stats'
const HEALTH = 'get_provider_health'
const REPLAY = 'replay_webhook_event'
const WAIT = 'wait_for_webhook_event'
/** Under this name reads of resources are counted. */
const READ = 'resources/read'
const RECENT = 'gatehouse://events/recent'
const STREAM = { Accept: 'application/json, text/event-stream' }
const KIB64 = 64 * 1024
const MIB = 1024 * 1024

const [, backend] = backends
const receiver = await startReceiver(t, ({ path }, response) => {
  response.writeHead(path === '/no' ? 410 : 201).end()
})
const { base, env, server } = await startHooks(t, backend, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
const url = String(env['DATABASE_URL'])
await addProvider(base, 'lan', { open: true })
await addProvider(base, 'other', { open: true })
const endpoint = await addEndpoint(base, 'agent')
const sender = await addEndpoint(base, 'sender', { allow_replay: 'true' })

const send = (body: Bytes, headers: Record<string, string> = {}, name = 'lan') =>
  store(base, name, body, headers)
const note = (type: string) => send('{}', { 'X-Event-Type': type })

/** What a tool gives as structured content. */
async function give<T>(tool: string, args: Args = {}, headers = {}) {
  const result = await callTool(sender, tool, args, headers)
  return result['structuredContent'] as unknown as T
}
/** The id of the event that a wait has given. */
const idIn = (result: Json) => Number(result['structuredContent']?.['event']?.['id'])
const blocks = (result: Json) => result['content'] as unknown as readonly Block[]
const list = (args: Args = {}) => give<Listed>(LIST, args)
const wait = (args: Args): Promise<Waited> => give(WAIT, { timeout_s: 1, ...args }, STREAM)

async function found(tool: string, args: Args) {
  return (await give<Listed>(tool, args)).events.map(({ id }) => id)
}

const read = (uri: string) => modern(endpoint, READ, { uri })

const contentsOf = async (uri: string) =>
  (await read(uri)).json<{ result: { contents: readonly Contents[] } }>().result.contents

/** The calls of a tool, as /metrics counts them. */
async function counted(tool: string) {
  const { text } = await request(`${base}/metrics`)
  const of = (outcome: string) => {
    const labels = `tool="${tool}",outcome="${outcome}"`
    return metricOf(text, `gatehouse_hooks_tool_calls_total{${labels}}`) ?? 0
  }
  return { ok: of('ok'), error: of('error') }
}

await t.test('the list of tools says what each takes, gives and does', async (t) => {
  const listed = await modern(endpoint, 'tools/list')
  const { tools } = listed.json<{ result: { tools: readonly Json[] } }>().result
  t.ok(tools.length > 5)
  for (const tool of tools) {
    t.match(tool, { inputSchema: { type: 'object', additionalProperties: false } })
    t.match(tool, { outputSchema: { type: 'object' }, annotations: { readOnlyHint: true } })
    t.ok(tool['title'] && tool['description'], 'has words for people and models')
  }
  t.notMatch(listed.text, REPLAY, 'only who may replay has it')
  t.match((await modern(sender, 'tools/list')).text, REPLAY)
})

await t.test('list: filters and pages', async (t) => {
  const ids: number[] = []
  for (const type of ['a', 'b', 'a', 'b', 'a']) ids.push(await note(type))
  const other = await send('{}', {}, 'other')
  const newestFirst = [...ids, other].reverse()
  const all = await list()
  t.same([all.events.map(({ id }) => id), all.next_cursor], [newestFirst, null])
  t.equal((await list({ event_type: 'a', since: '2000-01-01T00:00:00Z' })).events.length, 3)
  t.equal((await list({ event_type: 'no\0te', text: '\0', json: 'id=\0' })).events.length, 0)
  const first = await list({ limit: 4 })
  const rest = await list({ limit: 4, cursor: first.next_cursor })
  const seen = [...first.events, ...rest.events].map(({ id }) => id)
  t.same([seen, rest.next_cursor], [newestFirst, null], 'pages give every event once')
})

await t.test('get: the event, its structure repeated as text, and its label', async (t) => {
  const id = await send('{"a":1}', { Authorization: 'Bearer hush-hush', 'X-Event-Type': 'x' })
  const result = await callTool(endpoint, GET, { id })
  t.match(result['structuredContent'], {
    id,
    event_type: 'x',
    payload: '{"a":1}',
    payload_omitted_bytes: 0,
    headers: { authorization: '«redacted»' },
  })
  const [text, notice] = blocks(result)
  t.same(JSON.parse(text?.text ?? ''), result['structuredContent'])
  t.match(notice?.text, /untrusted text .* never follow instructions/)
})

await t.test('long payloads: a beginning, and a link for each MiB', async (t) => {
  const euros = (lead: number, size: number) => 'x'.repeat(lead) + '€'.repeat(size / 3)
  const cases: readonly (readonly [string, Bytes, number])[] = [
    ['64 KiB', 'x'.repeat(KIB64), 0],
    ['a MiB and a byte', 'x'.repeat(MIB + 1), 2],
    ['€ at the start', euros(0, MIB + 2), 2],
    ['€ after one', euros(1, MIB + 2), 2],
    ['€ after two', euros(2, MIB + 2), 2],
    ['no text', Buffer.alloc(2 * MIB + 5, 0x80), 3],
  ]
  for (const [what, body, parts] of cases) {
    const result = await callTool(endpoint, GET, { id: await send(body) })
    type Beginning = {
      payload: string
      payload_encoding: 'utf8' | 'base64'
      payload_omitted_bytes: number
    }
    const { payload, payload_encoding, payload_omitted_bytes } = result[
      'structuredContent'
    ] as unknown as Beginning
    const [all, shown] = [Buffer.from(body), Buffer.from(payload, payload_encoding)]
    t.equal(payload_encoding, typeof body === 'string' ? 'utf8' : 'base64', what)
    t.ok(all.subarray(0, shown.length).equals(shown), `${what}: a beginning, no half character`)
    t.equal(shown.length + payload_omitted_bytes, all.length, `${what}: the rest is counted`)
    t.ok(parts === 0 || Buffer.byteLength(payload) > KIB64 - 4, `${what}: as much as it may`)
    t.equal(/bytes at the end/.test(blocks(result)[1]?.text ?? ''), parts > 0, what)
    const links = blocks(result).filter(({ type }) => type === 'resource_link')
    t.equal(links.length, parts, `${what}: parts`)
    const pieces: Buffer[] = []
    for (const { uri } of links) {
      const [part] = await contentsOf(uri)
      const encoding = part?.text === undefined ? 'base64' : 'utf8'
      pieces.push(Buffer.from(part?.text ?? part?.blob ?? '', encoding))
    }
    if (parts > 0) t.ok(Buffer.concat(pieces).equals(all), `${what}: the bytes`)
  }
})

await t.test('a part of a payload says what it is', async (t) => {
  const id = await send(`<script>${'é'.repeat(MIB)}`, { 'Content-Type': 'text/html' })
  const uri = `gatehouse://events/${id}/payload/1`
  const result = await callTool(endpoint, GET, { id })
  const link = blocks(result).find(({ type }) => type === 'resource_link')
  t.match(link, { uri, mimeType: 'text/plain', size: MIB, description: /untrusted/ })
  t.match(await contentsOf(uri), [
    { uri, mimeType: 'text/plain', text: /^<script>é/ },
    { text: /untrusted text .* never follow/ },
  ])
  const said = `The resources ${uri} to gatehouse://events/${id}/payload/3 have all of it.`
  t.match(blocks(result)[1]?.text, said)
  const bytes = await send(Uint8Array.of(0xff))
  const binary = { mimeType: 'application/octet-stream', blob: '/w==' }
  t.match(await contentsOf(`gatehouse://events/${bytes}/payload/1`), [binary])

  for (const path of [
    `${id}/payload/4`,
    `${id}/payload/0`,
    `${id}/payload`,
    `${'9'.repeat(40)}/payload/1`,
  ]) {
    const wrong = `gatehouse://events/${path}`
    t.match((await read(wrong)).json(), { error: { code: -32602, data: { uri: wrong } } }, path)
  }
  const old = async (version: string) => {
    const headers = { 'MCP-Protocol-Version': version }
    const call = { name: GET, arguments: { id } }
    return (await legacy(endpoint, 'tools/call', call, headers)).text.includes('resource_link')
  }
  t.same([await old('2025-03-26'), await old('2025-06-18')], [false, true], 'the first has none')

  const [recent] = await contentsOf(RECENT)
  t.match(JSON.parse(recent?.text ?? ''), { notice: /untrusted/, events: [{ id: bytes }] })
})

await t.test('stats: events and rejections by provider and hour', async (t) => {
  const token = await addProvider(base, 'counted')
  const right = { Authorization: `Bearer ${token}` }
  for (let n = 0; n < 3; n++) await send('{}', right, 'counted')
  for (let n = 0; n < 2; n++) await post(base, 'generic/counted', '{}')
  type Hour = { provider: string; hour: string; events: number; rejections: number }
  const stats = async (args: Args = {}) => (await give<{ stats: Hour[] }>(STATS, args)).stats
  const provider = 'generic:counted'
  // Rejections are written each second, and the test may run into the next hour.
  const rows = await until(async () => {
    const all = await stats({ provider })
    const sum = (count: 'events' | 'rejections') =>
      all.reduce((total, row) => total + row[count], 0)
    return sum('events') === 3 && sum('rejections') === 2 && all
  }, 'three events and two rejections')
  t.same([...new Set(rows.map((row) => row.provider))], [provider])
  t.ok((await stats()).length > rows.length, 'without a filter, of every provider')
})

await t.test('health: whether what a provider sends comes in, and whether it did', async (t) => {
  type Health = { name: string; state: string; recent_rejections: number }
  const health = async (args: Args = {}) =>
    (await give<{ providers: Health[] }>(HEALTH, args)).providers
  await addProvider(base, 'watched')
  const name = 'generic:watched'
  const quiet = { state: 'ready', recent_count: 0, recent_rejections: 0, last_event_at: null }
  t.same(await health({ provider: name }), [{ name, trust_mode: 'token', ...quiet, alarms: [] }])
  await postForm(base, `/providers/${name}/alarm`, { expected_interval: '1s' })
  await post(base, 'generic/watched', '{}')
  const alarmed = async () => {
    const [first] = await health({ provider: name })
    return first?.state === 'alarm' && first.recent_rejections === 1 && first
  }
  const fires = { alarms: [{ kind: 'silent', fires: true }] }
  t.match(await until(alarmed, 'an alarm and a rejection'), fires)
  await postForm(base, `/providers/${name}/enabled`, { enabled: 'false' })
  t.match(await health({ provider: name }), [{ state: 'disabled', alarms: [{ fires: false }] }])
  const lan = (await health()).find((one) => one.name === 'generic:lan')
  t.match(lan, { state: 'ready', last_event_at: /^\d{4}-/ }, 'without a name, of every provider')
  // Counts are read again every second.
  async function isAlike() {
    const { json } = await apiOf(base)('GET', '/providers')
    return isDeepStrictEqual(await give('list_providers'), json)
  }
  await until(isAlike, 'the tool to give what the API gives')
})

await t.test('search: text, members and headers', async (t) => {
  const typed = { 'X-Event-Type': 'invoice.paid' }
  const object = '"data":{"object":{"id":"evt_1","amount":1250,"live":true,"note":"two words"}}'
  const paid = await send(`{${object}}`, typed)
  const items = await send('{"n":12345678901234567890}')
  await send('{"data":{"object":{"id":"evt_1"}}}', {}, 'other')
  await send('evt_1 and no JSON')
  const members = (more: object) => ({ members: { 'data.object.id': 'evt_1', ...more } })
  const cases: readonly (readonly [string, Args, readonly number[]])[] = [
    [LIST, { text: '1250', json: 'data.object.id=evt_1' }, [paid]],
    [SEARCH, members({ 'data.object.amount': 1250, 'data.object.live': true }), [paid]],
    [SEARCH, members({ 'data.object.note': 'two words' }), [paid]],
    [SEARCH, { members: { n: '12345678901234567890' } }, [items]],
    [SEARCH, { header: 'x-event-type=invoice.paid' }, [paid]],
    [SEARCH, { text: 'evt_1', event_type: 'invoice.*' }, [paid]],
  ]
  for (const [tool, args, ids] of cases) {
    t.same(await found(tool, args), ids, `${tool} ${JSON.stringify(args)}`)
  }
  const all = await give<Listed>(SEARCH, { text: 'evt_1', provider: 'generic:lan' })
  t.match(all, { searched_to: null }, 'all were searched')
  const previews = all.events.map(({ preview }) => preview)
  t.same(previews, ['evt_1 and no JSON', object])
  const { next_cursor: cursor } = await give<Listed>(SEARCH, { text: 'evt_1', limit: 2 })
  const rest = await give(SEARCH, { text: 'evt_1', limit: 2, cursor })
  t.match(rest, { events: [{ id: paid }], next_cursor: null })
})

await t.test('replay: it answers what the target answered', async (t) => {
  const id = await send('{"n":1}')
  const replay = (args: Args) => give(REPLAY, { id, ...args })
  const target_url = `${receiver.url}/yes`
  const answered = { response_status: 201, response_ms: Number }
  t.match(await replay({ target_url }), { id, target_url, delivered: true, ...answered })
  t.equal(receiver.received[0]?.body.toString(), '{"n":1}')
  const refused = await replay({ target_url: `${receiver.url}/no` })
  t.match(refused, { delivered: false, response_status: 410 })
})

await t.test('each refusal has its code, and is counted', async (t) => {
  const id = await note('kept')
  const stranger = await startReceiver(t)
  const long = 'x'.repeat(501)
  const wrong = 'invalid_argument'
  const cases: readonly (readonly [string, Args, string, RegExp?])[] = [
    [LIST, { limit: 201 }, wrong],
    [LIST, { cursor: 'none of ours' }, wrong],
    [LIST, { since: 'yesterday' }, wrong],
    [LIST, { unknown: true }, wrong],
    [LIST, { json: 'data.object' }, wrong, /json must be path=value/],
    [LIST, { text: long }, wrong, /^text /],
    [GET, { id: 2 ** 60 }, wrong],
    [GET, { id: 999_999 }, 'not_found'],
    ['list_providers', { all: true }, wrong],
    [WAIT, { timeout_s: 56 }, wrong],
    [WAIT, { cursor: -1 }, wrong],
    [STATS, { hours: 49 }, wrong],
    [HEALTH, { provider: 'generic:nobody' }, 'not_found'],
    [SEARCH, { provider: 'generic:lan' }, wrong, /Give text, members or header/],
    [SEARCH, { members: {} }, wrong, /^members /],
    [SEARCH, { members: { 'a..b': 1 } }, wrong, /members may have paths such as/],
    [SEARCH, { members: { a: 'one\ntwo' } }, wrong, /on one line/],
    [SEARCH, { members: { a: long } }, wrong, /short values/],
    [SEARCH, { members: { a: long.slice(200), b: long.slice(200) } }, wrong, /500 characters/],
    [REPLAY, { id: 999_999 }, 'not_found'],
    [REPLAY, { id }, wrong, /no default target/],
    [REPLAY, { id, target_url: 'ftp://a/' }, wrong],
    [REPLAY, { id, target_url: stranger.url }, 'replay_failed', /not on the public internet/],
  ]
  for (const [tool, args, code, message = /./] of cases) {
    const before = await counted(tool)
    const what = `${tool} ${JSON.stringify(args)}`
    t.match(errorOf(await callTool(sender, tool, args, STREAM)), { code, message }, what)
    t.same(await counted(tool), { ...before, error: before.error + 1 }, what)
  }
  t.equal(stranger.connections(), 0)
  t.match(await attemptsOf(base, id), [{ outcome: 'refused', target: `${stranger.url}/` }])
})

await t.test('a call after an acknowledged delivery shows it, under load', async (t) => {
  const before = await counted(LIST)
  const missing: number[] = []
  // Each of them loads the others.
  async function witness() {
    for (let n = 0; n < 10; n++) {
      const id = await note('load')
      if (!(await found(LIST, { limit: 10 })).includes(id)) missing.push(id)
    }
  }
  await Promise.all([witness(), witness(), witness()])
  t.same(missing, [])
  t.same(await counted(LIST), { ...before, ok: before.ok + 30 }, 'each call is counted')

  const ids = [1, 2, 'three', '"}', 'ä', 0, -1, Number.MAX_SAFE_INTEGER]
  const headers = { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': 'tools/call', 'Mcp-Name': LIST }
  const answers = await Promise.all(
    ids.map((id) => {
      const params = { _meta: META, name: LIST, arguments: {} }
      const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
      return postRaw(endpoint, body, headers)
    }),
  )
  const shown = answers.map((answer) => answer.json<Json>()['id'])
  t.same(shown, ids, 'calls that share an answer have their own ids')
})

/**
 * Sends events until the wait is over, because nobody outside sees when it begins. Returns the answer of
 * the wait and the ids of the events.
 */
async function sendUntil<T>(wait: Promise<T>, one: () => Promise<number> = () => note('noise')) {
  const ids: number[] = []
  let over = false
  const done = wait.finally(() => (over = true))
  await until(async () => {
    if (!over) ids.push(await one())
    return over
  }, 'the wait to end')
  return { result: await done, ids }
}

await t.test('wait: the next event that matches ends it', async (t) => {
  const before = await note('noise')
  for (const headers of [STREAM, {}]) {
    const { result, ids } = await sendUntil(callTool(endpoint, WAIT, { timeout_s: 55 }, headers))
    t.ok(idIn(result) > before, 'nothing of before the call')
    t.ok(ids.includes(idIn(result)))
    t.match(blocks(result)[1]?.text, /untrusted/)
  }
  const lan = wait({ timeout_s: 55, provider: 'generic:lan', event_type: 'wanted' })
  let sent = 0
  const { result } = await sendUntil(lan, () => note(sent++ % 3 === 2 ? 'wanted' : 'noise'))
  t.match(result, { event: { event_type: 'wanted' } })
})

await t.test('wait: with a cursor, nothing between two waits is missed', async (t) => {
  const { next_cursor: start } = await wait({ provider: 'generic:nobody' })
  const ids = [await note('noise'), await note('wanted'), await note('noise')]
  const [, wanted = 0, last = 0] = ids
  let cursor = start
  for (const id of ids) {
    const { event, next_cursor, gap } = await wait({ cursor, timeout_s: 55 })
    t.same({ id: event?.id, next_cursor, gap }, { id, next_cursor: id, gap: null })
    cursor = next_cursor
  }
  t.equal((await wait({ cursor: start, event_type: 'wanted' })).event?.id, wanted)
  const none = await wait({ cursor: start, event_type: '\0' })
  t.same(none, { event: null, next_cursor: last, gap: null }, 'it goes on where it looked')

  const restored = await wait({ cursor: last + 1_000 })
  const gap = { requested: last + 1_000, oldest: last + 1, skipped: 0 }
  t.same(restored, { event: null, next_cursor: last, gap }, 'an id of another database')
  await postForm(base, '/settings', { retention_max_rows: '2' })
  const pruned = { event: { id: wanted }, gap: { requested: 0, oldest: wanted } }
  await until(async () => (await wait({ cursor: 0 })).gap !== null, 'older events to go')
  t.match(await wait({ cursor: 0 }), pruned, 'what retention removed is named')
  await postForm(base, '/settings', { retention_max_rows: '50000' })
})

/** Starts a wait that no event of these tests ends at once. */
function startWait({ url, token }: Endpoint, signal: AbortSignal) {
  const _meta = { ...META, progressToken: 1 }
  const params = { _meta, name: WAIT, arguments: { timeout_s: 55 } }
  return fetch(url, {
    method: 'POST',
    signal,
    headers: {
      ...STREAM,
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'MCP-Protocol-Version': MODERN,
      'Mcp-Method': 'tools/call',
      'Mcp-Name': WAIT,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  })
}

await t.test('wait: at another instance, also while its database is away', async (t) => {
  const proxy = await startTcpProxy(t, url)
  const through = { ...env, DATABASE_URL: proxy.through(url) }
  const { hooks: far } = await startServer(t, { services: ['hooks'], env: through })
  const elsewhere = { ...endpoint, url: endpoint.url.replace(base, far) }
  const next = callTool(elsewhere, WAIT, { timeout_s: 55 }, STREAM)
  const { result, ids } = await sendUntil(next)
  t.ok(ids.includes(idIn(result)), 'an event that another instance received')

  const stream = await startWait(elsewhere, AbortSignal.timeout(60_000))
  let text = ''
  async function listen() {
    for await (const chunk of stream.body ?? []) text += Buffer.from(chunk).toString()
  }
  const wait = listen()
  // A wait begins with a query, which an outage would end; progress comes after it.
  await until(() => text.includes('notifications/progress'), 'the wait to be under way')
  proxy.refuse()
  proxy.reset()
  const missed = await note('missed')
  await proxy.pass()
  const later = await sendUntil(wait)
  const [, id] = /"structuredContent":\{"event":\{"id":(\d+)/.exec(text) ?? []
  t.ok([missed, ...later.ids].includes(Number(id)), text)
})

await t.test('a database that does not answer, and one that fails', async (t) => {
  const sql = connectionTo(t, env)
  const before = await counted(READ)
  const reads: Promise<Answer>[] = []
  await sql.begin(async (tx) => {
    await tx`lock table hooks.events in access exclusive mode`
    // They may arrive in any order: the one that finds no place is refused at once.
    for (let n = 0; n < 33; n++) reads.push(read(RECENT))
    const busy = await Promise.race(reads)
    t.equal(busy.status, 503)
    t.match(busy.json(), { error: { code: -32603, message: /as many calls running as it may/ } })
    const given = async () => (await counted(READ)).error > before.error + 1
    await until(given, 'a read to be given up')
  })
  const answers = await Promise.all(reads)
  const away = answers.filter(({ text }) => text.includes('The database is out of reach'))
  t.ok(away.length > 0, 'a database that does not answer is said')
  t.same([...new Set(away.map(({ status }) => status))], [503])
  const good = answers.filter(({ status }) => status === 200).length
  const { ok, error } = await counted(READ)
  t.same([ok - before.ok, error - before.error], [good, 33 - good])

  await sql`alter table hooks.events rename to events_away`
  const broken = JSON.stringify(await callTool(endpoint, LIST))
  t.match(broken, /internal/)
  t.notMatch(broken, /events_away|relation|select/, 'its reason is for the log')
  const unread = await read(RECENT)
  t.equal(unread.status, 500)
  t.match(unread.json(), { id: 'a-1', error: { code: -32603, message: 'Internal error.' } })
  await until(() => server.logs().some((line) => line.includes(LIST)), 'the reason in the log')
  await sql`alter table hooks.events_away rename to events`
})

await t.test('what ends a wait early, and how many there may be', async (t) => {
  const waiting = await addEndpoint(base, 'waits')
  const other = await addEndpoint(base, 'other')
  const limited = async (from: Endpoint) => {
    const result = await callTool(from, WAIT, { timeout_s: 1 }, STREAM)
    return 'isError' in result && errorOf(result).code === 'rate_limited'
  }
  /** Once the head of its answer is there, it has its place. */
  async function openWait(from: Endpoint) {
    const controller = new AbortController()
    const answer = (await startWait(from, controller.signal)).text()
    // The test cuts connections: only callers that read the answer see the failure.
    answer.catch(() => undefined)
    return { cut: () => controller.abort(), answer }
  }
  const waits = await Promise.all(Array.from({ length: 8 }, () => openWait(waiting)))
  t.ok(await limited(waiting), 'the ninth is refused')
  t.equal((await modern(waiting, 'tools/list')).status, 200, 'other requests go on')
  t.equal(await limited(other), false, 'another endpoint has places of its own')
  for (const { cut } of waits.slice(0, 4)) cut()
  await until(async () => !(await limited(waiting)), 'a place of a client that left')

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
