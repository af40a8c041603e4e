import { connect } from 'node:net'
import { t } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { connectionTo, postgres } from '../helpers/backends.ts'
import { createSender, keepAlive, metricOf, send } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import type { Owner } from '../helpers/owner.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { openDoctor } from '../helpers/vitals.ts'

/** What a flood of 60,000 requests may hold at a time: 32 of each connection are in flight. */
const MAX_FLOOD_MIB = 20

/** A connection of somebody who sends without waiting for answers. */
function flood(t: Owner, base: string, requests: string) {
  const socket = connect(Number(new URL(base).port), '127.0.0.1')
  const statuses: number[] = []
  socket.setEncoding('latin1').on('data', (text: string) => {
    for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) statuses.push(Number(status))
  })
  socket.on('error', () => undefined)
  socket.write(requests)
  t.teardown(() => socket.destroy())
  return {
    socket,
    /** Answers so far, but those whose status line came in two pieces. */
    answered: (status?: number) =>
      statuses.filter((one) => status === undefined || one === status).length,
  }
}

const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: go.example\r\n\r\n`
const STRANGER = { headers: { host: 'go.example' } }
const askHere = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const POST = 'POST /webhooks/code_host HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}'

const sender = createSender()
const doctor = await openDoctor(t)
const env = { ...(await postgres.env(t)), ...sender.env, ...doctor.env }
const server = await startServerProcess(t, { env, services: ['hooks', 'links'] })
const links = linksServer(server, env)
const { token } = await links.user('ann')
const known = apiOf(server.links, token)
const agent = keepAlive(t, 1)
const delivered = async () => (await send(agent, server.hooks, await sender.delivery())).status
t.equal((await known('GET', '/tokens')).status, 200)

/** Locks the table of links: visits wait for the database. Gives what unlocks it. */
async function lockLinks(t: Owner) {
  const sql = connectionTo(t, env)
  const lock = await sql.reserve()
  await lock`begin`
  await lock`lock table links.links in access exclusive mode`
  return async () => {
    await lock`rollback`
    lock.release()
  }
}

await t.test('deliveries are taken while strangers flood the links', async (t) => {
  t.equal(await delivered(), 202)
  const before = await doctor.examine(server.pid)
  const unknown = ask('/unknown').repeat(20_000)
  const flooders = [1, 2, 3].map(() => flood(t, server.links, unknown))
  await until(() => flooders.every(({ answered }) => answered(404) > 0), 'the flood to have begun')
  for (let n = 0; n < 10; n++) {
    t.equal(await delivered(), 202)
  }
  const grown = (await doctor.examine(server.pid)).heap - before.heap
  const most = Math.max(...flooders.map(({ answered }) => answered()))
  t.ok(most < 20_000, `the flood goes on: ${most} answered`)
  t.ok(grown < MAX_FLOOD_MIB, `memory is bounded: ${grown.toFixed(1)} MiB more`)
  for (const { socket } of flooders) socket.destroy()
  const after = await request(`${server.links}/unknown-too`, STRANGER)
  t.equal(after.status, 404)

  // Refusals that repeat are counted, not written.
  const lines = server.logs().map((line): Record<string, unknown> => JSON.parse(line))
  const written = lines.filter(({ msg, status }) => msg === 'request' && status === 404)
  const counts = lines.filter(({ msg, status }) => msg === 'lines left out' && status === 404)
  t.ok(written.length > 0)
  t.ok(written.length + counts.length < 200, `${written.length} lines and ${counts.length} counts`)
})

const MAX_WAITING = 16 * 1024 * 1024
const WAITING = 'gatehouse_http_waiting_bytes'
const ENDED = 'gatehouse_http_pipelines_ended_total'

await t.test(
  'what strangers send at once is bounded in bytes, and ends theirs alone',
  async (t) => {
    const metrics = async () => (await request(`${server.hooks}/metrics`)).text
    const figure = (text: string, name: string, level: string) =>
      metricOf(text, `${name}{level="${level}"}`) ?? 0

    // While the table is locked, visits wait for the database, and what was read behind them waits.
    const unlock = await lockLinks(t)
    let ended = 0
    const flooders = Array.from({ length: 12 }, (_, n) => {
      const visits = Array.from({ length: 5_000 }, (_, at) => ask(`/x${n}-${at}`)).join('')
      const flooder = flood(t, server.links, visits)
      flooder.socket.on('close', () => ended++)
      return flooder
    })
    const full = await until(async () => {
      const text = await metrics()
      return figure(text, ENDED, 'strangers') > 0 && text
    }, 'a connection to be ended')
    await until(() => ended > 0, 'its client to see it')
    const waiting = figure(full, WAITING, 'strangers')
    t.ok(waiting > MAX_WAITING / 2 && waiting <= MAX_WAITING, `${waiting} bytes wait`)
    t.ok(ended < flooders.length, 'others wait for their answers')

    t.equal((await request(`${server.links}/robots.txt`, STRANGER)).status, 200, 'a stranger')
    t.equal((await known('GET', '/tokens')).status, 200, 'a token')
    t.equal(await delivered(), 202)
    const pages = flood(t, server.hooks, askHere('/log').repeat(100))
    await until(() => pages.answered(200) > 90, 'pages that are asked for at once')
    const junk = flood(t, server.hooks, POST.repeat(100))
    await until(() => junk.answered(401) > 90, 'deliveries that are sent at once')
    t.notOk(pages.socket.destroyed || junk.socket.destroyed)
    const later = await metrics()
    for (const level of ['trusted', 'deliveries']) t.equal(figure(later, ENDED, level), 0, level)
    const told = server.logs().filter((line) => line.includes('too many requests at once'))
    t.equal(told.length, 1, 'one line a minute')
    t.match(told[0], /"level":"warn".*"deliveries":0,"trusted":0,"strangers":1\}/)

    for (const { socket } of flooders) socket.destroy()
    const isOver = async () => figure(await metrics(), WAITING, 'strangers') === 0
    await until(isOver, 'nothing to wait')
    await unlock()
  },
)

await t.test('a full waiting list of strangers refuses strangers alone', async (t) => {
  const unlock = await lockLinks(t)
  const flooders = Array.from({ length: 24 }, (_, n) =>
    flood(t, server.links, Array.from({ length: 32 }, (_, at) => ask(`/x${n}-${at}`)).join('')),
  )
  const refused = await until(async () => {
    const answer = await request(`${server.links}/one-more`, STRANGER)
    return answer.status === 503 && answer
  }, 'the list to be full')
  t.match(refused.headers['retry-after'], /^\d+$/)
  const { text: figures } = await request(`${server.hooks}/metrics`)
  for (const level of ['deliveries', 'trusted']) {
    t.match(figures, `gatehouse_database_waiting{level="${level}"} 0\n`)
    t.match(figures, `gatehouse_database_refused_total{level="${level}"} 0\n`)
  }
  const guess = `gh_${'x'.repeat(43)}`
  t.equal((await apiOf(server.links, guess)('GET', '/tokens')).status, 401, 'a token never seen')
  t.equal((await known('GET', '/tokens')).status, 200, 'a token that was valid before')
  t.equal(await delivered(), 202)
  t.equal((await request(`${server.hooks}/log`)).status, 200, 'a page')

  await unlock()
  await until(
    async () => (await request(`${server.links}/after`, STRANGER)).status === 404,
    'calm',
  )
  for (const { socket } of flooders) socket.destroy()
})
