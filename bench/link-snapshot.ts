import { statSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { openDatabase } from '../db/open.ts'
import { createLog } from '../kernel/log.ts'
import { systemClock } from '../kernel/time.ts'
import { readSnapshot, startSnapshots } from '../services/links/visits/visits/snapshot.ts'
import { temporaryFolder } from '../test/helpers/owner.ts'
import { run } from '../test/helpers/postgres.ts'
import { migratedDatabase } from './helpers/database.ts'
import { atMost, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { linksSeed } from './helpers/visits.ts'

const LINKS = 1_000_000
const ROUNDS = 5
const WRITE_MS = 2_000
const CPU_MS = 250

/** The snapshot of the most used links, written and read. */
export const linkSnapshot: Part = {
  name: 'link-snapshot',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await migratedDatabase(owner)
    await run(url, linksSeed(LINKS))
    await run(
      url,
      `update links.links
          set clicks = random() * 100000, visibility = (array['public', 'private', 'secure'])[1 + length(slug) % 3]`,
    )
    await run(url, 'vacuum analyze links.links')
    const folder = await temporaryFolder(owner)
    const log = createLog(
      (text) => console.error(text),
      () => new Date(),
    )
    await using database = await openDatabase({ url, dataDirectory: folder }, log)
    const { db } = database
    const snapshot = { path: join(folder, 'links-snapshot.jsonl'), url }
    const snapshots = startSnapshots({ db, clock: systemClock, log, snapshot })
    const [times, processor]: [number[], number[]] = [[], []]
    for (let round = -1; round < ROUNDS; round++) {
      const began = process.cpuUsage()
      const ms = await timed(() => snapshots?.now() ?? Promise.resolve())
      const { user, system } = process.cpuUsage(began)
      if (round < 0) continue
      times.push(ms)
      processor.push((user + system) / 1_000)
    }
    await snapshots?.stop()
    const began = performance.now()
    const found = await readSnapshot(snapshot, new Date())
    return [
      atMost('write (median)', median(times), WRITE_MS, 'ms'),
      atMost('of it the processor (median)', median(processor), CPU_MS, 'ms'),
      { name: 'read', value: performance.now() - began, unit: 'ms' },
      { name: 'links', value: found?.links.length ?? 0, unit: '' },
      { name: 'file', value: statSync(snapshot.path).size, unit: 'bytes' },
    ]
  },
}
