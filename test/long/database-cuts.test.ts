import { t, type Test } from 'tap'
import { ackOf, createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'
import { until } from '../helpers/until.ts'

// The promise: wherever PostgreSQL's answer is cut, also in the middle of that to a commit, an acknowledgement
// is given for what is stored only, what is sent again makes no second row, and no later answer is wrong.

/** Every byte of an answer in the long form. */
const STEP = extent({ short: 9, long: 1 })

t.test('an answer to a delivery is cut after each byte', async (t) => {
  const { url, proxy, sender, server } = await start(t)
  const agent = keepAlive(t, 1)
  const acked: { id: number; delivery: string }[] = []
  let [refused, stored, whole] = [0, 0, 0]
  for (let bytes = 0; whole < 2; bytes += STEP) {
    const delivery = await sender.delivery()
    // Connections that are there and have answered: the cut concerns this delivery.
    const before = await send(agent, server.hooks, await sender.delivery())
    t.equal(before.status, 202, 'all is well before')
    proxy.cutAfter(bytes)
    const first = await send(agent, server.hooks, delivery)
    if (first.status === 202) {
      whole++
      acked.push(ackOf(delivery, first))
    } else {
      refused++
      t.match(first, { status: 503, type: 'application/problem+json', retryAfter: /^\d+$/ })
      t.notMatch(first.text, /ECONN|127\.0\.0\.1|postgres|saveDeliveries/i)
    }
    await proxy.pass()
    const found = await run(url, 'select id from hooks.events where external_id = $1', [
      delivery.id,
    ])
    if (first.status === 503 && found.length === 1) stored++
    if (first.status === 202) t.equal(found.length, 1, 'acknowledged is stored')
    const again = await until(async () => {
      const answer = await send(agent, server.hooks, delivery)
      return answer.status === 202 && ackOf(delivery, answer)
    }, 'the same delivery to be accepted')
    if (found.length === 1) t.equal(again.id, Number(found[0]?.['id']), 'it is known by its id')
    acked.push(again)
  }
  t.ok(refused > 3, `${refused} were refused`)
  t.ok(stored > 0, `${stored} of them were stored, and nobody knew`)
  const rows = await run(url, 'select id, external_id from hooks.events')
  t.equal(new Set(rows.map((row) => row['external_id'])).size, rows.length, 'one row each')
  const ids = new Map(rows.map((row) => [row['external_id'], Number(row['id'])]))
  for (const { id, delivery } of acked) t.equal(ids.get(delivery), id, delivery)
  noFailureIn(t, server)
})

async function start(t: Test) {
  const cluster = await ownPostgres(t)
  const url = await cluster.createDatabase()
  const proxy = await startTcpProxy(t, url)
  const sender = createSender()
  const env = { ...sender.env, DATABASE_URL: proxy.through(url) }
  const server = await startServerProcess(t, { services: ['hooks', 'links'], env })
  return { url, proxy, sender, server }
}
