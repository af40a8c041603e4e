import { t } from 'tap'
import { apiOf, openApiOf, operationsOf } from '../helpers/api.ts'
import { postgres } from '../helpers/backends.ts'
import {
  accepted,
  addProvider,
  deliver,
  eventIds,
  postForm,
  startHooks,
  store,
} from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { expectStatus, refuseAll, type Refusal } from '../helpers/refusals.ts'
import { attemptsOf, startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { openStream, type EventStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

type Page = { events: readonly { id: number }[]; next_cursor: string | null }
type Sent = { kind: string; outcome: string; status: number | null; target: string }

const receiver = await startReceiver(t, ({ path }, response) => {
  response.writeHead(path === '/no' ? 410 : 201).end('an answer')
})
const { base } = await startHooks(t, postgres, {
  HOOKS_REPLAY_TARGETS: `127.0.0.1:${receiver.port}`,
})
const api = apiOf(base)
const agent = await addEndpoint(base, 'agent')
const sender = await addEndpoint(base, 'sender', { allow_replay: 'true' })
await addProvider(base, 'ci', { open: true })

const send = (body: string | Uint8Array, type?: string) =>
  store(base, 'ci', body, type === undefined ? {} : { 'X-Event-Type': type })

const first = await send('{"order":{"id":"o-1"}}', 'order.created')
const second = await send(Buffer.from([0xff, 0x00, 0x01]))
const third = await accepted(deliver(base, 'code_host', '{"order":{"id":"o-2"}}'))

await t.test('the list has the filters of the log, and pages', async (t) => {
  const list = async (query: string) => (await api<Page>('GET', `/events${query}`)).json
  const idsOf = ({ events }: Page) => events.map(({ id }) => id)
  const page = await list('?limit=2')
  t.same(idsOf(page), [third, second])
  const rest = await list(`?limit=2&cursor=${page.next_cursor}`)
  t.same([idsOf(rest), rest.next_cursor], [[first], null], 'next_cursor leads to the end')
  const found = await apiOf(base, agent.token)<Page>('GET', '/events?json=order.id%3Do-1')
  t.same(idsOf(found.json), [first], 'a program with a token may search payloads')
})

await t.test('an event, and its bytes', async (t) => {
  const text = await api<object>('GET', `/events/${first}`)
  t.match(text.json, {
    payload: '{"order":{"id":"o-1"}}',
    payload_encoding: 'utf8',
    headers: { 'x-event-type': 'order.created' },
    source_ip: '127.0.0.1',
  })
  const bytes = await api('GET', `/events/${second}`)
  t.match(bytes.json, { payload: '/wAB', payload_encoding: 'base64' })

  const download = await request(`${base}/api/v1/events/${second}/payload`)
  t.same(download.body, Buffer.from([0xff, 0x00, 0x01]))
  t.match(download.headers, {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="event-${second}.bin"`,
    'x-content-type-options': 'nosniff',
  })
})

await t.test('replay: recorded like one of the page', async (t) => {
  const target = (path: string) => `http://127.0.0.1:${receiver.port}${path}`
  const replay = (body: object, call = api) => call<Sent>('POST', `/events/${first}/replay`, body)
  const sent = await replay({ target_url: target('/yes') })
  t.match(sent, { status: 200, json: { outcome: 'delivered', status: 201 } })
  t.notOk('answer' in sent.json, 'what the target answered is for the page alone')
  t.match((await attemptsOf(base, first))[0], { outcome: 'delivered', body: 'an answer' })
  const refused = await replay({ target_url: target('/no') }, apiOf(base, sender.token))
  t.match(refused, { status: 200, json: { outcome: 'failed', status: 410 } })
})

const wrong = secret('wrong-token')
const READS = ['/events', `/events/${first}`, `/events/${first}/payload`, '/providers', '/stats']

await t.test('who may call', async (t) => {
  const token = { authorization: `Bearer ${agent.token}` }
  const authorization = `Bearer ${sender.token}`
  const foreign = { authorization, 'sec-fetch-site': 'cross-site' }
  const replay = `POST /api/v1/events/${first}/replay`
  const body = { target_url: `http://127.0.0.1:${receiver.port}/` }
  for (const path of READS) {
    await expectStatus(200, request(`${base}/api/v1${path}`, { headers: token }), path)
  }
  const call = 'GET /api/v1/events'
  const unknown = { authorization: `Bearer ${wrong}` }
  await refuseAll(t, { service: 'hooks', base, state: () => attemptsOf(base, first) }, [
    ...READS.map((path): Refusal => [{ call: `GET /api/v1${path}`, headers: unknown }, 401]),
    [{ call, headers: { authorization: `bearer ${agent.token} x` } }, 401],
    [{ call, headers: { authorization: ['Basic x', `Bearer ${agent.token}`] } }, 400],
    [{ call, headers: { ...token, host: 'evil.example' } }, 403],
    [{ call: replay, body, headers: token }, 403, /may not replay/],
    [{ call: replay, body, headers: unknown }, 401],
    [{ call: replay, body, headers: foreign }, 403],
  ])
  const basic = { authorization: 'Basic dXNlcjpwYXNz' }
  // By this name the call is not compared with the API's document, which has no passwords.
  const proxied = apiOf(base.replace('127.0.0.1', 'localhost'))
  await expectStatus(200, proxied('GET', '/events', undefined, basic), "a proxy's password")
})

await t.test('wrong input', async (t) => {
  const nothing = [9_999_999, 'x', '0', '-1', '1e3', '1.0', '99999999999999999999'].flatMap(
    (id) => [`GET /api/v1/events/${id}`, `GET /log/${id}`],
  )
  nothing.push('GET /api/v1/events/0/payload', 'GET /log/0/payload')
  const replay = `POST /api/v1/events/${first}/replay`
  await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
    ['GET /api/v1/stats?hours=0', 400, /^hours /],
    ['GET /api/v1/stats?hours=49', 400, /^hours /],
    ...nothing.map((call): Refusal => [call, 404, /^There is no event under this id/]),
    ['POST /api/v1/events', 405],
    [{ call: replay, body: '{}', headers: { 'content-type': 'text/plain' } }, 415],
    [{ call: replay, body: { target_url: 1 } }, 400],
    [{ call: replay, body: {} }, 422, /no default target/],
    [{ call: replay, body: { target_url: '' } }, 422, /^The target URL must be/],
    [{ call: 'POST /api/v1/events/0/replay', body: {} }, 404],
  ])
})

await t.test('the live stream takes a token, too', async (t) => {
  const made = await addEndpoint(base, 'follower')
  const headers = { authorization: `Bearer ${made.token}` }
  const stream = await openStream(t, `${base}/events`, { headers })
  t.equal(stream.status, 200)
  const others: EventStream[] = []
  for (let n = 0; n < 7; n++) others.push(await openStream(t, `${base}/events`, { headers }))
  await refuseAll(t, { service: 'hooks', base, state: () => eventIds(base) }, [
    [{ call: 'GET /events', headers }, 503, /as many calls running/],
    [{ call: 'GET /events', headers: { authorization: `Bearer ${wrong}` } }, 401],
  ])
  t.equal((await openStream(t, `${base}/events`)).status, 200, 'who has no token is not bounded')
  await expectStatus(200, apiOf(base, made.token)('GET', '/events'), 'nor are other calls')
  others[0]?.close()
  await until(
    async () => (await openStream(t, `${base}/events`, { headers })).status === 200,
    'a place to be free',
  )
  await postForm(base, '/settings/endpoints/follower/revoke', {})
  await stream.closed
})

await t.test('destinations are for people: no token may read or change them', async (t) => {
  const state = async () => (await api('GET', '/destinations')).json
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const body = { name: 'other', url: `${receiver.url}/onwards` }
  const none = [403, /^No token may/] as const
  await refuseAll(t, { service: 'hooks', base, state }, [
    [{ call: 'GET /api/v1/destinations', ...as(sender.token) }, ...none],
    [{ call: 'POST /api/v1/destinations', body, ...as(sender.token) }, ...none],
  ])
})

await t.test('the document says that a token is one way in', async (t) => {
  const { text } = await request(`${base}/api/openapi.yaml`)
  const document = openApiOf(text)
  const operations = operationsOf(document).filter(({ path }) => path.startsWith('/api/'))
  t.ok(operations.length > 4)
  for (const { operation, path } of operations) {
    const isPersonal =
      path.startsWith('/api/v1/destinations') || /Search$/.test(operation.operationId)
    const withToken = isPersonal ? [] : [{}, { bearer: [] }]
    t.same(operation.security, withToken, path)
    t.ok('401' in operation.responses && '403' in operation.responses, path)
  }
})
