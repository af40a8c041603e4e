import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { extent } from '../helpers/program.ts'
import { request } from '../helpers/http.ts'
import { anonymousKib, openSocketCount, openSockets } from '../helpers/process-figures.ts'
import type { HeldSocket } from '../helpers/process-figures.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { addProvider, eventIds, payloadOf, post } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

// Hundreds of clients that are silent, send a byte now and then, or never read what they asked for:
// others are answered meanwhile, and rightly; the process grows by no more than GROWTH_KIB; when they
// are gone, so are their descriptors. The long form also waits until each is ended by the limits of
// docs/failures.md ("Slow clients"); test/kernel/http.test.ts has these, shortened, in each run.

const EACH = extent({ short: 60, long: 250 })
/** Ten payloads of 4 MB, as the database's text and as bytes, and 64 KiB a connection. */
const GROWTH_KIB = 200 * 1024
/** Head, body, idle and not reading: the longest is 120 s, looked at each 2 s. */
const ALL_ENDED_MS = 150_000
const LARGE = 4_000_000

const HEAD = 'POST /webhooks/generic/lan HTTP/1.1\r\nHost: localhost\r\n'

await t.test('slow and silent clients', async (t: Test) => {
  const [embedded] = backends
  const server = await startServerProcess(t, { services: ['hooks'], env: await embedded.env(t) })
  const base = server.hooks
  await addProvider(base, 'lan', { open: true })
  const big = await post(base, 'generic/lan', Buffer.alloc(LARGE, 'x'))
  const { id } = big.json<{ id: number }>()
  t.equal((await payloadOf(base, id)).length, LARGE)
  const before = { sockets: openSocketCount(server.pid), kib: anonymousKib(server.pid) }
  const port = Number(new URL(base).port)

  const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  const silent = await openSockets(t, port, EACH)
  const heads = await openSockets(t, port, EACH, { first: HEAD })
  const bodies = await openSockets(t, port, EACH, { first: `${HEAD}Content-Length: 900\r\n\r\nx` })
  const chunks = await openSockets(t, port, EACH, {
    first: `${HEAD}Transfer-Encoding: chunked\r\n\r\n384\r\nx`,
  })
  const deaf: HeldSocket[] = []
  for (const [path, count] of Object.entries({
    [`/log/${id}/payload`]: 10,
    '/openapi.json': EACH,
    '/log': EACH,
    '/events': EACH,
  })) {
    const asking = await openSockets(t, port, count)
    for (const { socket } of asking) {
      socket.pause()
      socket.write(ask(path))
    }
    deaf.push(...asking)
  }
  const slow = [...silent, ...heads, ...bodies, ...chunks]
  const all = [...slow, ...deaf]
  await until(
    () => openSocketCount(server.pid) >= before.sockets + all.length,
    'all to be accepted',
  )

  let stored = 1
  for (let round = 0; round < 5; round++) {
    for (const { socket, closed } of [...heads, ...bodies, ...chunks]) {
      if (!closed && socket.writable) socket.write(round % 2 === 0 ? 'X' : 'a')
    }
    const body = `{"round":${round}}`
    const answer = await post(base, 'generic/lan', body)
    t.equal(answer.status, 202)
    t.equal((await payloadOf(base, answer.json<{ id: number }>().id)).toString(), body)
    t.equal((await request(`${base}/`)).status, 200)
    stored++
  }
  t.equal((await eventIds(base)).length, stored, 'what did not arrive whole is not stored')
  const grown = anonymousKib(server.pid) - before.kib
  t.comment(`${all.length} connections, ${grown} KiB more`)
  t.ok(grown < GROWTH_KIB, `${grown} KiB more, of ${GROWTH_KIB}`)

  if (extent({ short: false, long: true })) {
    await until(() => slow.every(({ closed }) => closed), 'the slow to be ended', ALL_ENDED_MS)
    for (const { text } of slow) t.match(text, /^HTTP\/1\.1 408 /)
  }
  for (const { socket } of all) socket.destroy()
  await until(() => openSocketCount(server.pid) <= before.sockets + 2, 'connections to be closed')
  t.equal((await eventIds(base)).length, stored)
  t.equal((await request(`${base}/healthz`)).status, 200)
  noFailureIn(t, server)
})
