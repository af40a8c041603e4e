import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { t, type Test } from 'tap'
import { seedEmbedded, postgres } from '../helpers/backends.ts'
import { createSender, keepAlive, metricOf, send } from '../helpers/deliveries.ts'
import { addProvider } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ENGINE_FLAGS } from '../helpers/program.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import {
  callInside,
  HERE,
  IN_OWN_NETWORK,
  lacksOwnNetwork,
  STRANGER,
} from '../deploy/own-network.ts'

// Of 800 open files, connections may have 400: those of hooks half of them, those of links a quarter.
const OPEN_FILES = 800
const PARTS = { hooks: 200, links: 100 }
const LIMITED = ['sh', '-c', `ulimit -n ${OPEN_FILES}; exec "$@"`, 'sh']

/** Opens connections, and writes on each. */
async function open(t: Test, base: string, count: number, text = '') {
  const sockets = Array.from({ length: count }, () => connect(Number(new URL(base).port)))
  for (const socket of sockets) socket.on('error', () => undefined)
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  for (const socket of sockets) if (text !== '') socket.write(text)
  return sockets
}

const isOpen = (socket: Socket) => !socket.destroyed && !socket.readableEnded

/** The value of a metric of connections. */
async function connections(base: string, what: string, service: string) {
  const { text } = await request(`${base}/metrics`)
  return metricOf(text, `gatehouse_http_connections_${what}_total{service="${service}"}`) ?? 0
}

await t.test('connections without a request leave room for others', async (t) => {
  const sender = createSender()
  const env = { ...(await postgres.env(t)), ...sender.env }
  const program = [...LIMITED, process.execPath, ...ENGINE_FLAGS, 'server.ts']
  const server = await startServerProcess(t, { env, program, services: ['hooks', 'links'] })
  await addProvider(server.hooks, 'open', { open: true })
  const kept = keepAlive(t, 1)
  const deliver = async (agent = keepAlive(t, 1)) =>
    (await send(agent, server.hooks, await sender.delivery())).status
  t.equal(await deliver(kept), 202)

  const strangers = await open(t, server.links, 3 * PARTS.links)
  await until(() => strangers.filter(isOpen).length <= PARTS.links, 'connections to be ended')
  // Their ends arrive in any order.
  await until(() => strangers[0] !== undefined && !isOpen(strangers[0]), 'that of the oldest')
  for (let n = 0; n < 20; n++) {
    t.equal(await deliver(), 202, 'on a new connection')
    t.equal(await deliver(kept), 202, 'on one that is kept')
  }
  const visit = await request(`${server.links}/unknown`, { headers: { host: 'go.example' } })
  t.equal(visit.status, 404, 'a visitor of links')
  t.ok((await connections(server.hooks, 'ended', 'links')) > 2 * PARTS.links)
  t.equal(await connections(server.hooks, 'ended', 'hooks'), 0)
  const told = server.logs().filter((line) => line.includes('"too many connections"'))
  t.equal(told.length, 1, 'one line a minute')
  t.match(JSON.parse(told[0] ?? ''), { level: 'warn', service: 'links', max: PARTS.links })

  // A connection with a request is not ended, even if the body is missing. At the end all are such.
  const head =
    'POST /webhooks/generic/open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n'
  const busy = await open(t, server.hooks, PARTS.hooks, head)
  await until(async () => {
    busy.push(...(await open(t, server.hooks, 1, head)))
    return (await connections(server.links, 'refused', 'hooks')) > 0
  }, 'a connection to be refused')
  for (const socket of busy) socket.end('"abc"')
  await until(async () => (await deliver().catch(() => 0)) === 202, 'room again')
})

await t.test(
  'one address can have a quarter of a service, a proxy has no bound',
  { skip: lacksOwnNetwork() },
  async (t) => {
    const env = {
      GATEHOUSE_DATA_DIR: await temporaryFolder(t),
      GATEHOUSE_TRUSTED_PROXIES: `${HERE}/32`,
      LINKS_ADDR: '0.0.0.0:0',
    }
    await seedEmbedded(env)
    const program = [...LIMITED, ...IN_OWN_NETWORK]
    const server = await startServerProcess(t, { services: ['links'], env, program })
    const port = Number(new URL(server.links).port)
    const text = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
    const ended = async (from: string, idle: number) => {
      const call = { host: HERE, port, from, text: text.replace('metrics', 'healthz'), idle }
      t.match(await callInside(server.pid, call), /^HTTP\/1\.1 200 /, from)
      const metrics = await callInside(server.pid, { host: HERE, port, from: HERE, text })
      return Number(/^gatehouse_http_connections_ended_total\S* (\d+)/m.exec(metrics)?.[1] ?? 0)
    }
    t.equal(await ended(HERE, PARTS.links / 2), 0, 'a proxy')
    t.equal(await ended(STRANGER, PARTS.links / 2), PARTS.links / 4 + 1, 'a stranger')
  },
)
