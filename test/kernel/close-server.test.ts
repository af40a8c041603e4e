import { once } from 'node:events'
import { request as send, type Agent, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { keepAlive } from '../helpers/deliveries.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

/** How long a server that stops waits for a request on its way. */
const LAST_REQUESTS_MS = 500

await t.test('a connection that is open is served once more', async (t) => {
  // On a machine that stands still the test may send its last requests too late.
  while (!(await servesOnceMore(t))) t.comment('sent too late: once again')
})

/** False when the requests were sent too late: then it shows nothing. */
async function servesOnceMore(t: Test) {
  const { server, stopping } = await startStopping(t)
  const url = server.hooks
  const agents = [1, 2, 3].map(() => keepAlive(t, 1))
  const [first, second, third] = agents
  for (const agent of agents) {
    const { status, headers } = await get(`${url}/healthz`, agent)
    t.match({ status, headers }, { status: 200, headers: { connection: 'keep-alive' } })
  }
  const silent = connect(Number(new URL(url).port), '127.0.0.1')
  await once(silent, 'connect')
  const { response } = await get(`${url}/events`, undefined, false)
  const streamEnd = once(response, 'close')

  const stopped = performance.now()
  await stopping()
  const asked = Promise.allSettled([
    get(`${url}/healthz`, first),
    get(`${url}/events`, second),
    whole(silent, 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'),
  ])
  await nextTurn()
  if (performance.now() - stopped > LAST_REQUESTS_MS) return false
  await streamEnd
  const [page, stream, raw] = await asked
  const last = { status: 200, headers: { connection: 'close' } }
  t.match(page, { value: last })
  const text = /^retry: \d+\n\n$/
  t.match(stream, { value: { ...last, text } }, 'a stream ends with the time to come back after')
  const value = /^HTTP\/1\.1 200 [^]*\r\nconnection: close\r\n/i
  t.match(raw, { value }, 'one that had said nothing')
  t.same(await server.exited, { code: 0, signal: null }, 'one that stays silent holds nothing up')
  await t.rejects(get(`${url}/healthz`, third), { code: /^ECONN/ })
  return true
}

/** A server and its stop: `stopping` settles when the signal is taken. */
async function startStopping(t: Test) {
  const env = await postgres.env(t)
  const server = await startServerProcess(t, { services: ['hooks'], env, mayExit: true })
  async function stopping() {
    process.kill(server.pid, 'SIGTERM')
    await until(() => server.logs().some((line) => line.includes('"stopping"')), 'the stop')
  }
  return { server, stopping }
}

/** Asks on a connection of the agent's; the body is read unless told otherwise. */
async function get(url: string, agent: Agent | undefined, reads = true) {
  const outgoing = send(url, { agent: agent ?? false }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  let text = ''
  response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  response.on('error', () => undefined)
  if (reads) await once(response, 'end')
  return { status: response.statusCode, headers: response.headers, text, response }
}

/** Writes and reads to the end of the connection. */
async function whole(socket: ReturnType<typeof connect>, text: string) {
  let got = ''
  socket.setEncoding('latin1').on('data', (chunk: string) => (got += chunk))
  socket.on('error', () => undefined)
  socket.write(text)
  await once(socket, 'close')
  return got
}
