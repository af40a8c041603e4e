import { t } from 'tap'
import type { Row } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { brokenOf, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { noFailureIn, startOnOwnPostgres } from '../helpers/outage-setup.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { freePort } from '../helpers/free-port.ts'
import type { Env } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { stallPostgres } from '../helpers/stalled-postgres.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

/** Real senders give up after 10 s: they must have an answer before. */
const ANSWER_MS = 8_000
const REFUSED = { status: 503, type: 'application/problem+json', retryAfter: /^\d+$/ }

await t.test('PostgreSQL hangs for a while', async (t) => {
  const { cluster, env, sender, server, base } = await startOnOwnPostgres(t)
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status')
  const load = startLoad(t, { base: () => base, sender, senders: 16, timeoutMs: ANSWER_MS })
  await until(() => load.acked.length > 200, 'the load to be under way')

  const goOn = await stallPostgres(t, cluster)
  const ackedBefore = load.acked.length
  // Two answers each: the second request starts while the first ones' statements hang.
  await until(() => load.refused.length >= 32, 'every sender to be refused twice', 25_000)
  const health = await request(`${base}/healthz`)
  t.equal(health.status, 503)
  t.equal(health.headers['content-type'], 'application/problem+json')
  t.equal((await request(`${base}/log`)).status, 503)
  for (const { status, type, retryAfter } of load.refused) {
    t.match({ status, type, retryAfter }, REFUSED)
  }
  t.same(load.unanswered, [], `every sender was answered within ${ANSWER_MS} ms`)

  goOn()
  await until(() => load.acked.length > ackedBefore + 100, 'deliveries to be accepted again')
  await until(async () => (await request(`${base}/healthz`)).status === 200, 'good health')
  await load.stop()
  const newest = Math.max(...load.acked.map(({ id }) => id))
  await stream.until(({ id }) => id === String(newest), 'the newest event on the stream')
  const query = (_env: Env, text: string): Promise<readonly Row[]> => run(env.DATABASE_URL, text)
  const stored = await storedEvents({ query }, env)
  t.same(lostOf(load.acked, stored), [])
  t.same(brokenOf(load.sent, stored), [])
  noFailureIn(t, server)
})

await t.test('a start without a database says so in one line', async (t) => {
  const password = secret('unreachable-password')
  const port = await freePort()
  const url = `postgres://gatehouse:${password}@127.0.0.1:${port}/gatehouse`
  const started = await runCli(['serve', 'hooks'], {
    env: { DATABASE_URL: url, HOOKS_ADDR: '127.0.0.1:0' },
  })
  t.equal(started.code, 1)
  t.equal(started.stdout, '', 'it was never ready')
  t.match(started.stderr, new RegExp(`^gatehouse: [^\\n]*127\\.0\\.0\\.1:${port}[^\\n]*\\n$`))
})

await t.test('a start with a wrong password says so in one line', async (t) => {
  const cluster = await ownPostgres(t)
  const url = new URL(cluster.url())
  url.password = secret('wrong-password')
  const started = await runCli(['serve', 'hooks'], {
    env: { DATABASE_URL: url.href, HOOKS_ADDR: '127.0.0.1:0' },
  })
  t.equal(started.code, 1)
  t.match(started.stderr, /^gatehouse: [^\n]*password authentication failed[^\n]*\n$/)
})
