import { notFound } from '../../kernel/fault.ts'
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { t, type Test } from 'tap'
import { createBodyBudget } from '../../kernel/http/body.ts'
import { systemClock } from '../../kernel/time.ts'
import { createGuard } from '../../kernel/net/guard.ts'
import { createHttpMetrics } from '../../kernel/http/request-log.ts'
import { createWaitingRequests } from '../../kernel/http/waiting.ts'
import { HTTP_TIMES } from '../../kernel/http/connections.ts'
import { createListener } from '../../kernel/http/listener.ts'
import { createLog } from '../../kernel/log.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { problem, bytesReply, jsonReply } from '../../kernel/http/reply.ts'
import { createRouter, type Route } from '../../kernel/http/router.ts'
import { allIn, rawExchange, request } from '../helpers/http.ts'
import { until } from '../helpers/until.ts'

/** A listener with routes of the test's own. */
async function listen(t: Test, routes: readonly Route[], patienceMs?: number, times = HTTP_TIMES) {
  let lines = ''
  const budget = createBodyBudget(10, patienceMs)
  const log = createLog(
    (text) => (lines += text),
    () => new Date(),
  )
  const listener = createListener({
    service: 'test',
    find: createRouter(routes),
    noRoute: notFound('Nothing.'),
    faultReply(fault, { path }) {
      if (path === '/no-words') throw new Error('no words')
      return problem(fault, path)
    },
    guard: createGuard({
      hosts: () => new Set(),
      trustedProxies: () => false,
      userHeader: () => 'remote-email',
      groupsHeader: () => undefined,
    }),
    trustedProxies: () => false,
    identify: () => ({ kind: 'anonymous' }),
    bodyBudget: budget,
    log,
    metrics: createHttpMetrics(createMetrics()),
    waiting: createWaitingRequests(createMetrics(), log),
    maxConnections: 1_000,
    clock: systemClock,
    times,
  })
  /** Its ends of connections, in the order in which they came. */
  const sockets: Socket[] = []
  listener.server.on('connection', (socket) => sockets.push(socket))
  await listener.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => listener.close(0))
  const { port } = listener.server.address() as AddressInfo
  const all = () => {
    log.flush()
    return lines
  }
  const close = () => listener.close(60_000)
  return { port, base: `http://127.0.0.1:${port}`, budget, sockets, log: all, close }
}

function route(path: string, handle: Route['handle']): Route {
  return { method: 'GET', path, access: 'open', handle }
}

const BAD_HEADER = route('/no-header', () => bytesReply('', 'text/plain', { 'x-bad': 'a\nb' }))

t.test('what a handler throws stays in the log', async (t) => {
  const cause = 'relation "hooks.events" does not exist'
  const { base, port, log } = await listen(t, [
    route('/throws', () => {
      throw new Error(cause)
    }),
    route('/rejects', () => Promise.reject(new Error(cause))),
    BAD_HEADER,
    route('/late', () => {
      const body = () => {
        throw new Error(cause)
      }
      return { status: 200, headers: {}, body }
    }),
  ])
  for (const path of ['/throws', '/rejects', '/no-header']) {
    const answer = await request(base + path)
    t.match(answer.json(), { status: 500, detail: 'Internal server error.' }, path)
    t.notMatch(answer.text, /relation|x-bad|stack|\.ts/, path)
    t.match(log(), `"request_id":"${String(answer.headers['x-request-id'])}"`, path)
  }
  const late = await rawExchange(port, 'GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n')
  t.ok(late.closed, 'an answer that has begun breaks off')
  t.notMatch(late.text, /relation|\r\n0\r\n/)
  t.equal(log().match(/"msg":"handler failed"/g)?.length, 4)
  t.equal(log().match(/relation \\"hooks\.events\\"/g)?.length, 6, 'each with its stack')
})

t.test('requests of one packet are answered in order, each by itself', async (t) => {
  const { port, log } = await listen(t, [
    route('/well', () => bytesReply('well', 'text/plain')),
    BAD_HEADER,
  ])
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  const paths = ['/well', '/no-header', '/well', '/none', '/well']
  // In one packet, so that all of them are read at once.
  const { text } = await rawExchange(port, paths.map(ask).join(''), {
    until: (heard) => heard.match(/HTTP\/1/g)?.length === paths.length && heard.endsWith('well'),
  })
  const statuses = allIn(text, /HTTP\/1\.1 (\d+)/g).map(Number)
  t.same(statuses, [200, 500, 200, 404, 200])
  t.equal(log().match(/"status":200/g)?.length, 3)
  const cut = await rawExchange(port, `${ask('/well')}nonsense\r\n\r\n`)
  t.match(
    cut.text,
    /^HTTP\/1\.1 200 [^]*well$/,
    'the response is sent although what follows is not HTTP',
  )
  t.ok(cut.closed)
})

t.test('a connection that breaks is no request', async (t) => {
  const { base, port, log } = await listen(t, [])
  for (const begun of ['', 'GET / HT', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n']) {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write(begun)
    // What it has written is read before the reset.
    await request(base)
    socket.resetAndDestroy()
    await once(socket, 'close')
  }
  t.equal((await request(base)).status, 404)
  t.notMatch(log(), /malformed/)
})

/** Answers what of a body was read, which may have eight bytes. */
const ECHO: Route = {
  method: 'POST',
  path: '/',
  access: 'open',
  async handle(context) {
    const body = await context.body(8)
    return jsonReply(body.ok ? body.bytes.toString() : body.reason)
  },
}

/** Begins a request whose body has eight bytes. */
function begin(t: Test, port: number, start: string) {
  let heard = ''
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('data', (bytes) => (heard += bytes.toString()))
  socket.write(`POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\n${start}`)
  return { socket, heard: () => heard }
}

t.test('bodies share one budget, and give it back', async (t) => {
  const { base, port, budget } = await listen(t, [ECHO])
  const send = async (body: string) => (await request(base, { method: 'POST', body })).text
  const [gone, whole] = [begin(t, port, '1234'), begin(t, port, '567')]
  await until(() => budget.used === 7, 'what has come to be counted')
  t.equal(await send('abcd'), '"overloaded"')
  t.equal(await send('abc'), '"abc"', 'what fits is read')
  t.equal(await send('x'.repeat(9)), '"too-large"')
  t.equal(budget.used, 7)
  gone.socket.destroy()
  await until(() => budget.used === 3, 'a client that left to be forgotten')
  whole.socket.write('89012')
  await until(() => whole.heard().endsWith('"56789012"'), 'a whole body to be taken')
  t.equal(budget.used, 0)
  t.equal(await send('abcdefgh'), '"abcdefgh"')
})

t.test('a body that takes its time gives its place to others', async (t) => {
  const { base, port, budget } = await listen(t, [ECHO], 0)
  const silent = begin(t, port, '')
  const held = begin(t, port, '1234567')
  await until(() => budget.used === 7, 'most of a body')
  const younger = begin(t, port, 'abc')
  await until(() => budget.used === 10, 'the start of another one')
  t.equal((await request(base, { method: 'POST', body: 'ABCD' })).text, '"ABCD"')
  await until(() => held.heard().endsWith('"overloaded"'), 'the oldest one to be refused')
  younger.socket.write('defgh')
  await until(() => younger.heard().endsWith('"abcdefgh"'), 'the younger one to be taken')
  silent.socket.write('ijklmnop')
  await until(() => silent.heard().endsWith('"ijklmnop"'), 'the one that took no room to be taken')
  t.match({ used: budget.used, reading: budget.reading.size }, { used: 0, reading: 0 })
})

t.test('slow senders are ended, each by its limit', async (t) => {
  const times = { head: 1_000, request: 1_500, idle: 300, stalled: 60_000, check: 50 }
  const { port } = await listen(t, [route('/', () => jsonReply({})), ECHO], undefined, times)
  const host = 'Host: localhost\r\n'
  const tooLate = /^HTTP\/1\.1 408 /
  for (const [name, sent, answer] of [
    ['silent', '', tooLate],
    ['a head without end', `GET / HTTP/1.1\r\n${host}`, tooLate],
    ['a body', `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\n\r\nx`, tooLate],
    ['a chunk', `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n5\r\nx`, tooLate],
    ['idle', `GET / HTTP/1.1\r\n${host}\r\n`, /^HTTP\/1\.1 200 [^]*\{\}$/],
  ] as const) {
    const { text, closed } = await rawExchange(port, sent)
    t.ok(closed, name)
    t.match(text, answer, name)
  }
})

t.test('a reader who takes nothing is ended, one who reads on is not', async (t) => {
  const large = 'x'.repeat(20_000_000)
  const times = { head: 20_000, request: 120_000, idle: 300, stalled: 4_000, check: 2_000 }
  const routes = [
    route('/', () => jsonReply({})),
    route('/large', () => bytesReply(large, 'text/plain')),
  ]
  const { port, base, sockets } = await listen(t, routes, undefined, times)
  const ask = 'GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n'
  const deaf = connect(port, '127.0.0.1')
  deaf.pause()
  deaf.write(ask)
  let came = 0
  const patient = connect(port, '127.0.0.1')
  patient.write(ask)
  const start = performance.now()
  patient.on('data', (chunk: Buffer) => {
    came += chunk.length
    // The whole takes it longer than the limit, and each of its many pieces far less.
    const due = start + (came / large.length) * 1.25 * times.stalled
    patient.pause()
    setTimeout(() => patient.resume(), Math.max(1, due - performance.now()))
  })
  await once(patient, 'close')
  t.ok(came > large.length, `who reads on has the whole answer: ${came} bytes came`)
  await until(() => sockets.every(({ destroyed }) => destroyed), 'the other one to be ended')
  let heard = 0
  deaf.on('error', () => undefined)
  deaf.on('data', (chunk: Buffer) => (heard += chunk.length))
  await once(deaf.resume(), 'close')
  t.ok(heard < large.length, `who did not has ${heard} bytes, and no connection`)
  t.equal((await request(base)).status, 200)
})

t.test(
  'a listener that closes sends what it has answered, however slowly it is read',
  async (t) => {
    // More than the buffers of two sockets take.
    const large = 'x'.repeat(18_000_000)
    const handle = () => bytesReply(large, 'text/plain')
    const { port, log, close } = await listen(t, [route('/', handle)])
    const socket = connect(port, '127.0.0.1').pause()
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => log().includes('"status":200'), 'the answer to be given')
    const closed = close()
    let came = 0
    socket.on('data', (chunk: Buffer) => (came += chunk.length)).resume()
    await closed
    await until(() => socket.closed, 'the end of the connection')
    t.ok(came > large.length, 'all of it')
  },
)

t.test('a doubled slash counts as one where the path has no route as it is', async (t) => {
  const handle = () => jsonReply({})
  const paths = ['/log', '/log/:id', '/go//:name']
  const find = createRouter(paths.map((path) => route(path, handle)))
  t.match(find('GET', '///log'), { kind: 'route', route: { path: '/log' } })
  t.match(find('GET', '//log//7'), { kind: 'route', params: { id: '7' } })
  t.match(find('GET', '/go//docs'), { kind: 'route', params: { name: 'docs' } })
  t.match(find('POST', '//log'), { kind: 'wrong-method', allow: 'GET, HEAD' })
  t.same(find('GET', '//none'), find('GET', '/none'))
})
