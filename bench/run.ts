import { availableParallelism, cpus, totalmem } from 'node:os'
import { makeServerTemplate } from '../test/helpers/postgres.ts'
import { SHARED_POSTGRES } from '../test/helpers/shared-postgres.ts'
import type { Part } from './helpers/measure.ts'
import { recycleLog, startBenchCluster } from './helpers/database.ts'
import { HAS_WRK } from './helpers/wrk.ts'
import { checks } from './checks.ts'
import { destinations } from './destinations.ts'
import { fanOut } from './fan-out.ts'
import { flood } from './flood.ts'
import { growth } from './growth.ts'
import { executable } from './executable.ts'
import { ingest } from './ingest.ts'
import { large } from './large.ts'
import { instances } from './instances.ts'
import { linkLists } from './link-lists.ts'
import { linkSnapshot } from './link-snapshot.ts'
import { linkStats } from './link-stats.ts'
import { logPages } from './log-pages.ts'
import { mcp } from './mcp.ts'
import { memory } from './memory.ts'
import { names } from './names.ts'
import { opsHealth } from './ops-health.ts'
import { owed } from './owed.ts'
import { hooksPages, linksPages, opsPages } from './pages.ts'
import { queue } from './queue.ts'
import { redirects } from './redirects.ts'
import { startUp } from './start-up.ts'
import { soak } from './soak.ts'
import { streams } from './streams.ts'
import { transfer } from './transfer.ts'

/** `npm run bench [-- PART …]`: prints each part's figures; exit code 1 when a bound is not kept. */
const PARTS: readonly Part[] = [
  startUp,
  executable,
  ingest,
  logPages,
  hooksPages,
  linksPages,
  opsPages,
  redirects,
  instances,
  names,
  linkLists,
  linkStats,
  opsHealth,
  checks,
  flood,
  streams,
  mcp,
  queue,
  destinations,
  fanOut,
  memory,
  transfer,
]

/** Only by name: they take minutes, `growth` and `large` half an hour, `soak` an hour, and gigabytes of the disk. */
const LONG_PARTS: readonly Part[] = [growth, large, owed, linkSnapshot, soak]

const wanted = process.argv.slice(2)
const gibibytes = Math.round(totalmem() / 2 ** 30)
console.log(
  `${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores, ${gibibytes} GiB, Node ${process.version}, load by ${HAS_WRK ? 'wrk' : 'our own client'}`,
)

// One cluster for all parts, found by the helpers as in the test suite.
const cluster = await startBenchCluster()
process.env[SHARED_POSTGRES] = cluster.url()
await makeServerTemplate(cluster)
await recycleLog(cluster)

/** What ends what the present part has started. */
const ends: (() => unknown)[] = []
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void endPart().then(() => process.exit(1)))

let missed = 0
const chosen = [...PARTS, ...LONG_PARTS].filter(({ name }) => wanted.includes(name))
for (const part of wanted.length > 0 ? chosen : PARTS) {
  try {
    console.log(`\n${part.name}`)
    for (const { name, value, unit, bound, kept } of await part.run({
      teardown: (end) => ends.push(end),
    })) {
      const verdict = bound === undefined ? '' : `  (${bound}${kept === false ? ': MISSED' : ''})`
      if (kept === false) missed++
      console.log(
        `  ${name.padEnd(44)} ${value.toFixed(value < 100 ? 2 : 0).padStart(10)} ${unit}${verdict}`,
      )
    }
  } finally {
    await endPart()
  }
}
await cluster.destroy()
process.exit(missed === 0 ? 0 : 1)

/** The last first, and all of them: one that fails leaves nothing of the others behind. */
async function endPart(): Promise<void> {
  for (let end = ends.pop(); end !== undefined; end = ends.pop()) {
    try {
      await end()
    } catch (error) {
      console.error(error)
    }
  }
}
