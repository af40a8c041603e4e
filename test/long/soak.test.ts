import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { createSender } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { addEndpoint } from '../helpers/mcp.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { median, openDoctor, type Vitals } from '../helpers/vitals.ts'
import { startSoak } from './soak-load.ts'

// All services under everything that users do, at once (soak-load.ts), for ten minutes in the long form:
// - memory is flat: the median of the last third is at most 1.15 times that of the middle third, for the
//   process and for the heap after a collection (the first third warms up), and 400 MiB; the short form
//   has no time to warm up, so there only the heap tells something;
// - when the load has ended, open files and handles are what they were before it began, but for the
//   connections to the database, which are 21 at most;
// - no answer is a failure of ours, and the log has none;
// - only the tables grow that keep what was sent.

const LENGTH = extent({
  short: { ms: 9_000, everyMs: 500, growth: { rss: 1.5, heap: 1.08 } },
  long: { ms: 600_000, everyMs: 5_000, growth: { rss: 1.15, heap: 1.15 } },
})
/** The long form tells its curves also when all is well. */
const say = extent({
  short: (text: string) => t.comment(text),
  long: (text: string) => process.stderr.write(`# ${text}\n`),
})
const MOST_MIB = 400
/** Ten for statements, ten for transactions, one that listens. */
const CONNECTIONS = 21
/** Keep what was sent: all others have a handful of rows. */
const GROWING =
  /^(hooks\.(events|repeats|activity|rejections|refusals|attempts)|links\.(changes|clicks)|ops\.(sessions|session_lines|events))$/
const HANDFUL = 40

t.jobs = 2
for (const backend of backends) {
  void t.test(backend.name, async (t) => {
    const doctor = await openDoctor(t)
    const sender = createSender()
    const env = {
      ...(await backend.env(t)),
      ...sender.env,
      OPS_INVENTORY: await inventoryFile(t, { services: [] }),
    }
    const server = await startServerProcess(t, { env: { ...env, ...doctor.env } })
    const ann = await linksServer(server, env).user('ann')
    await makeLink(ann, 'kept')
    const endpoint = await addEndpoint(server.hooks, 'soak')
    const before = await doctor.examine(server.pid)

    const load = startSoak(t, { server, sender, ann, endpoint })
    const seen: Vitals[] = []
    const began = performance.now()
    while (performance.now() - began < LENGTH.ms) {
      await pause(LENGTH.everyMs)
      seen.push(await doctor.examine(server.pid))
    }
    await load.stop()

    const third = Math.floor(seen.length / 3)
    for (const what of ['rss', 'heap'] as const) {
      const values = seen.map((vitals) => vitals[what])
      const [middle, last] = [median(values.slice(third, -third)), median(values.slice(-third))]
      const curve = Array.from({ length: 11 }, (_, at) =>
        Math.round(values[Math.round((at / 10) * (values.length - 1))] ?? 0),
      )
      say(`${backend.name}: ${what} in MiB over the time: ${curve.join(' ')}`)
      t.ok(last <= LENGTH.growth[what] * middle, `${what}: ${last} MiB after ${middle} MiB`)
      t.ok(last <= MOST_MIB, `${what}: ${last} MiB`)
    }

    const pool = backend.name === 'postgres' ? CONNECTIONS : 0
    let after = before
    const calm = async () => {
      after = await doctor.examine(server.pid)
      return after.files <= before.files + pool && after.handles <= before.handles + pool
    }
    await until(calm, 'files and handles to be closed', 15_000).catch(() => undefined)
    say(`${backend.name}: ${JSON.stringify(before)} before, ${JSON.stringify(after)} after`)
    t.ok(await calm(), `${after.files} files, ${after.handles} handles`)
    if (backend.name === 'postgres') {
      const [row] = await backend.query(
        env,
        `select count(*)::int as open from pg_stat_activity
          where datname = current_database() and application_name like 'gatehouse %'`,
      )
      t.ok(Number(row?.['open']) <= CONNECTIONS, `${Number(row?.['open'])} connections`)
    }

    say([...load.answers].map(([what, times]) => `${what}: ${times}`).join(', '))
    const failures = [...load.answers].filter(([what]) => / (0|5\d\d)$/.test(what))
    t.same(failures, [], 'no failure of ours')
    for (const good of ['delivery 202', 'visit 302', 'link 204', 'tool 200', 'stream 200'])
      t.ok((load.answers.get(good) ?? 0) > 0, good)
    for (const good of ['relay 101', 'memory 204', 'session 201'])
      t.ok((load.answers.get(good) ?? 0) > 0, good)
    noFailureIn(t, server)

    await server.stop()
    const tables = await backend.query(
      env,
      `select table_schema || '.' || table_name as name,
              (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I.%I',
                table_schema, table_name), false, true, '')))[1]::text::int as rows
         from information_schema.tables where table_schema in ('audit', 'hooks', 'links', 'notices', 'ops')`,
    )
    const grown = tables.filter(
      ({ name, rows }) => Number(rows) > HANDFUL && !GROWING.test(String(name)),
    )
    t.same(grown, [], 'no other table has grown')
  })
}
