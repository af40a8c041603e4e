import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { t, type Test } from 'tap'
import { embedded } from '../helpers/backends.ts'
import { extent } from '../helpers/program.ts'
import { request } from '../helpers/http.ts'
import { openDescriptors, residentKib } from '../helpers/process-figures.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { addProvider, post } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

/** Connections that stay open behind an answer. */
const CONNECTIONS = extent({ short: 2_000, long: 10_000 })
/** What each may cost the process. */
const KIB_EACH = 32
const IDLE_MS = 65_000
const PROBE = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'

// Thousands of connections that stay open: others are served, each costs the process KIB_EACH at
// most, and nothing is left of them when they go; in the long form they are ended by the server, a
// minute after their last request. Where descriptors run out, who is there goes on, further clients
// wait or are turned away, and the server is well again when there is room.

const room = descriptorLimit('self') - 500
const few = room < CONNECTIONS && `only ${room} descriptors: raise "ulimit -n"`
await t.test(`${CONNECTIONS} idle connections`, { skip: few }, async (t) => {
  const server = await startServerProcess(t, { services: ['hooks'], env: await embedded.env(t) })
  const base = server.hooks
  await addProvider(base, 'lan', { open: true })
  const port = Number(new URL(base).port)
  const start = openSocketCount(server.pid)
  // What the process needs for many at once, and keeps, comes first.
  const warm = await openSockets(t, port, 200)
  await until(() => warm.every(({ text }) => text.includes('"status"')), 'answers')
  for (const { socket } of warm) socket.destroy()
  await until(() => openSocketCount(server.pid) <= start + 2, 'the first to be gone')
  const before = { sockets: openSocketCount(server.pid), kib: residentKib(server.pid) }

  const idle = await openSockets(t, port, CONNECTIONS)
  await until(() => idle.every(({ text }) => text.includes('"status"')), 'answers', 60_000)
  t.equal(idle.filter(({ closed }) => closed).length, 0, 'all of them are open')
  t.ok(openSocketCount(server.pid) >= before.sockets + CONNECTIONS)
  t.equal((await post(base, 'generic/lan', '{}')).status, 202)
  t.equal((await request(`${base}/log`)).status, 200)
  const each = (residentKib(server.pid) - before.kib) / CONNECTIONS
  t.ok(each < KIB_EACH, `${each.toFixed(1)} KiB for each`)
  t.comment(`${each.toFixed(1)} KiB for each of ${CONNECTIONS}`)

  if (extent({ short: false, long: true })) {
    await until(() => idle.every(({ closed }) => closed), 'all to be ended', IDLE_MS + 30_000)
  } else for (const { socket } of idle) socket.destroy()
  await until(() => openSocketCount(server.pid) <= before.sockets + 2, 'connections to be closed')
  t.equal((await post(base, 'generic/lan', '{}')).status, 202)
  noFailureIn(t, server)
})

await t.test('more connections than descriptors', async (t) => {
  const limited = ['sh', '-c', 'ulimit -n 200; exec "$0" "$@"', process.execPath, 'server.ts']
  const env = { ...(await embedded.env(t)), NOTIFY_SOCKET: '/nowhere', WATCHDOG_USEC: '1000000' }
  const server = await startServerProcess(t, { services: ['hooks'], env, program: limited })
  t.equal(descriptorLimit(server.pid), 200, 'its limit')
  const base = server.hooks
  await addProvider(base, 'lan', { open: true })
  const before = openSocketCount(server.pid)
  const port = Number(new URL(base).port)
  const many = await openSockets(t, port, 600)
  await until(() => openDescriptors(server.pid) >= 195, 'the last descriptors to be in use')
  const first = await until(() => many.find(({ text }) => text.includes('"status"')), 'an answer')
  const said = first.text.length
  first.socket.write(PROBE)
  await until(() => first.text.length > said, 'who is there to be answered')
  // The database has no descriptors for new files either.
  const large = 'x'.repeat(12 * 1024 * 1024)
  for (let n = 0; n < 3; n++) {
    const heard = first.text.length
    first.socket.write(`${delivery(large)}${PROBE}`)
    const answered = () => first.text.slice(heard).includes('"status":"ok"')
    await until(() => answered() || first.closed, 'a large delivery to be answered')
    t.notMatch(first.text.slice(heard), 'HTTP/1.1 500')
  }
  for (const { socket } of many) socket.destroy()
  await until(() => openSocketCount(server.pid) <= before + 2, 'connections to be closed')
  const answer = await until(() => post(base, 'generic/lan', '{}'), 'the server to take another')
  t.equal(answer.status, 202)
  t.equal((await post(base, 'generic/lan', large)).status, 202, 'files can be made again')
  t.equal((await request(`${base}/log`)).status, 200)
  noFailureIn(t, server)
})

function delivery(body: string) {
  const head = `POST /webhooks/generic/lan HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}`
  return `${head}\r\n\r\n${body}`
}

/** How many of them are sockets: what clients cost, apart from the embedded database's files. */
function openSocketCount(pid: number) {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter((fd) => isSocket(`${folder}/${fd}`)).length
}

/** How many file descriptors a process may open. */
function descriptorLimit(pid: number | 'self') {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1])
}

function isSocket(link: string) {
  try {
    return readlinkSync(link).startsWith('socket:')
  } catch {
    // It was closed since the folder was read.
    return false
  }
}

/** A connection that is held open, with the start of what came on it. */
type HeldSocket = { socket: Socket; text: string; closed: boolean }

/** Opens connections, some at a time, and asks on each; they are destroyed with the test. */
async function openSockets(t: Test, port: number, count: number) {
  const held: HeldSocket[] = []
  t.teardown(() => {
    for (const { socket } of held) socket.destroy()
  })
  while (held.length < count) {
    const batch = Array.from({ length: Math.min(200, count - held.length) }, () =>
      openSocket(port),
    )
    held.push(...(await Promise.all(batch)))
  }
  return held
}

async function openSocket(port: number) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const one = { socket, text: '', closed: false }
  socket.setEncoding('latin1').on('data', (more: string) => {
    if (one.text.length < 4_096) one.text += more
  })
  const tried = Promise.withResolvers<void>()
  // A reset is an end like any other here.
  socket.on('error', () => undefined)
  socket.on('close', () => {
    one.closed = true
    tried.resolve()
  })
  socket.on('connect', () => {
    socket.write(PROBE)
    tried.resolve()
  })
  await tried.promise
  return one
}
