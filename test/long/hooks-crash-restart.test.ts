import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { startServerProcess } from '../helpers/server-process.ts'

await t.test('a delivery that is sent again after the crash is stored once', async (t) => {
  for (const backend of backends) {
    const sender = createSender()
    const env = { ...(await backend.env(t)), ...sender.env }
    const deliveries = await sender.deliveries(200)
    const first = await startServerProcess(t, { services: ['hooks'], env })
    const agent = keepAlive(t, 16)
    // Ends with the crash: some are answered, some stored without an answer, some are lost.
    const answers = Promise.allSettled(deliveries.map((one) => send(agent, first.hooks, one)))
    await Promise.race([answers, pause(randomInt(20, 60))])
    await first.kill()
    await answers
    const second = await startServerProcess(t, { services: ['hooks'], env })
    for (const one of deliveries) t.equal((await send(agent, second.hooks, one)).status, 202)
    await second.stop()
    const rows = await backend.query(env, 'select external_id from hooks.events')
    const kept = rows.map((row) => String(row['external_id'])).toSorted()
    t.same(kept, deliveries.map(({ id }) => id).toSorted(), backend.name)
  }
})
