import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { ackOf, createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { leadsTo, linksServer, makeLink } from '../helpers/links.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { ended, inventoryFile, opsServer, trigger } from '../helpers/ops.ts'
import { newSeed, randomOf } from '../helpers/until.ts'
import { startServer } from '../helpers/server.ts'
import { openStream } from '../helpers/sse.ts'
import { startTcpProxy } from '../helpers/tcp-proxy.ts'

// The promise: how the network cuts the bytes between Gatehouse and PostgreSQL into packets makes no difference,
// from the first migration on.

const seed = newSeed()

for (const most of [1, 2, 7, 50]) {
  await t.test(`packets of up to ${most} bytes, seed ${seed}`, async (t) => {
    const { DATABASE_URL: url = '' } = await backends[1].emptyEnv(t)
    const proxy = await startTcpProxy(t, url)
    proxy.split(randomOf(seed), most)
    const sender = createSender()
    const OPS_INVENTORY = await inventoryFile(t, { services: [] })
    const env = { ...sender.env, OPS_INVENTORY, DATABASE_URL: proxy.through(url) }
    const server = await startServer(t, { env })

    const stream = await openStream(t, `${server.hooks}/events`, { timeoutMs: 30_000 })
    await stream.until(({ event }) => event === 'status', 'a status', 30_000)
    const agent = keepAlive(t, 4)
    const deliveries = [
      await sender.delivery(),
      await sender.delivery({ size: 5_000 }),
      await sender.delivery({ type: 'ünï' }),
    ]
    const answers = await Promise.all(deliveries.map((one) => send(agent, server.hooks, one)))
    for (const [n, delivery] of deliveries.entries()) {
      const answer = answers[n]
      if (answer === undefined || answer.status !== 202) t.fail(`${answer?.status}`)
      else {
        const { id } = ackOf(delivery, answer)
        await stream.until((event) => event.id === String(id), 'it on the stream', 30_000)
      }
    }

    const ann = await linksServer(server, { DATABASE_URL: url }).user('ann')
    const link = await makeLink(ann, 'pieces', { title: 'Stücke \u{1f600}', tags: ['one', 'two'] })
    t.same((await ann.api('GET', `/links/${link.id}`)).json, link)
    t.equal(await leadsTo(server.links, '/pieces'), 'https://pieces.test/')

    const ops = opsServer(server, env)
    await ended(ops, undefined, 60_000)
    const { id } = await trigger(ops)
    t.match(await ended(ops, id, 60_000), { status: 'completed', exit_code: 0 })
    noFailureIn(t, server)
  })
}
