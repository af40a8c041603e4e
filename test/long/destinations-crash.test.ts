import { randomInt } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { createSender, startLoad } from '../helpers/deliveries.ts'
import {
  addDestination,
  destination,
  eventOf,
  listed,
  untilListed,
} from '../helpers/destinations.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const ROUNDS = 10
/** Latest moment of a crash, after the first acknowledgement of its round. */
const LATEST_MS = 1_500
/** A claim of a dead process ends after 15 s. */
const ARRIVAL_MS = 120_000

await onPostgres(t, 'kill -9 while events are delivered onwards', async (t: Test, backend) => {
  const sender = createSender()
  const env = {
    ...(await backend.env(t)),
    ...sender.env,
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
  }
  let isDown = false
  const receiver = await startReceiver(t, (_, response) => {
    if (isDown) response.destroy()
    else response.writeHead(204).end()
  })
  const acked: number[] = []
  for (let round = 1; round <= ROUNDS; round++) {
    const server = await startServerProcess(t, { services: ['hooks'], env })
    if (round === 1) {
      await addDestination(env, 'any', `${receiver.url}/any`)
      await addDestination(env, 'row', `${receiver.url}/row`, '--ordered')
    }
    const base = () => server.hooks
    const load = startLoad(t, { base, sender, senders: 4, restMs: 10 })
    await until(() => load.acked.length > 0, 'the first acknowledgement')
    const crash = randomInt(LATEST_MS)
    isDown = round % 2 === 0
    await pause(crash / 2)
    isDown = false
    await pause(crash / 2)
    await Promise.all([server.kill(), load.stop()])
    acked.push(...load.acked.map(({ id }) => id))
  }

  const server = await startServerProcess(t, { services: ['hooks'], env })
  const last = startLoad(t, { base: () => server.hooks, sender, senders: 1 })
  await until(() => last.acked.length > 0, 'an event after the last crash')
  await last.stop()
  acked.push(...last.acked.map(({ id }) => id))
  const got = (path: string): readonly number[] =>
    receiver.received.filter((one) => one.path === path).map(eventOf)
  const missing = (path: string): readonly number[] => {
    const ids = new Set(got(path))
    return acked.filter((id) => !ids.has(id))
  }
  // Those that failed twice would wait for minutes.
  async function isOver(name: string) {
    await destination(env, 'retry', name)
    const { waiting, position } = await listed(env, name)
    return waiting === 0 && position >= Math.max(...acked)
  }
  for (const name of ['any', 'row']) {
    await until(() => isOver(name), `all of ${name}`, ARRIVAL_MS, 1_000)
    await untilListed(env, name, { waiting: 0, dead: 0, gap: 0, disabled_by: null })
    t.same(missing(`/${name}`), [], `all of ${acked.length} acknowledged came to ${name}`)
  }
  const row = got('/row')
  const early = row.filter((id, at) => id < (row[at - 1] ?? 0))
  t.same(early, [], 'in order: none comes after one behind it, not even a repeat')
})
