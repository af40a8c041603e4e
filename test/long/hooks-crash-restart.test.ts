import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import { createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import type { ServerProcess } from '../helpers/server-process.ts'

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

await t.test('a second process on the embedded directory is refused', async (t) => {
  const [embedded] = backends
  const sender = createSender()
  const env = { ...(await embedded.env(t)), ...sender.env }
  const first = await startServerProcess(t, { services: ['hooks'], env })
  const agent = keepAlive(t, 1)
  const serves = async (server: ServerProcess): Promise<void> => {
    const answer = await send(agent, server.hooks, await sender.delivery())
    t.equal(answer.status, 202)
  }
  await serves(first)
  const second = await runCliProcess(['serve', 'hooks'], {
    env: { ...env, HOOKS_ADDR: '127.0.0.1:0' },
  })
  t.equal(second.code, 1)
  t.equal(second.stdout, '', 'it was never ready')
  const directory = env['GATEHOUSE_DATA_DIR']
  t.equal(
    second.stderr,
    `gatehouse: data directory ${directory} is held by another process: ` +
      'stop that process, or set GATEHOUSE_DATA_DIR or DATABASE_URL\n',
  )
  await serves(first)
  await first.kill()
  const third = await startServerProcess(t, { services: ['hooks'], env })
  await serves(third)
})
