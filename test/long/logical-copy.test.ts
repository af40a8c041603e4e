import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { t, type Test } from 'tap'
import { createSender } from '../helpers/deliveries.ts'
import { linksServer } from '../helpers/links.ts'
import { assertKept, startServiceLoad } from './service-load.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { ownPostgres, run, type Cluster } from '../helpers/postgres.ts'
import { ROOT } from '../helpers/program.ts'
import { follow } from '../helpers/replays.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { postgresPrograms } from '../runner/system-parts.ts'
import { allIn } from '../helpers/http.ts'

// The commands of docs/cluster.md take a server under load to another PostgreSQL. Nothing acknowledged is lost. GATEHOUSE_TEST_NEW_POSTGRES names the folder of the programs of the new server, where
// it is another version.

const [, prepare, uncopied, isWhole, change] = blocksOf('## A copy on another server')

await t.test('to another server by publication and subscription', async (t) => {
  const old = await ownPostgres(t)
  const fresh = await newPostgres(t)
  await run(old.url(), 'alter system set wal_level = logical')
  await old.stop()
  await old.start()
  const urls = { OLD: await gatehouseDatabase(old), NEW: await gatehouseDatabase(fresh) }
  const sender = createSender()
  const OPS_INVENTORY = await inventoryFile(t, { services: [] })
  const start = (DATABASE_URL: string) =>
    startServerProcess(t, { env: { ...sender.env, OPS_INVENTORY, DATABASE_URL } })
  let server = await start(urls.OLD)
  const { token } = await linksServer(server, { DATABASE_URL: urls.OLD }).user('ann')
  const load = startServiceLoad(t, { server: () => server, sender, token })
  const counts = () => [
    load.deliveries.acked.length,
    load.acked.links.length,
    load.acked.memories.length,
  ]
  const goesOn = async () => {
    const before = counts()
    await until(() => counts().every((n, at) => n > (before[at] ?? 0) + 5), 'the load', 60_000)
  }
  await goesOn()
  sh(prepare, urls)
  await until(() => sh(uncopied, urls) === '0', 'the tables to be copied', 60_000, 500)
  await goesOn()
  const stopped = performance.now()
  await server.stop()
  await until(() => sh(isWhole, urls) === 't', 'the new server to have everything', 60_000)
  sh(change, urls)
  const newest = await newestOf(urls.NEW)
  t.equal(newest, await newestOf(urls.OLD))
  server = await start(urls.NEW)
  t.comment(`interrupted for ${Math.round(performance.now() - stopped)} ms`)
  await goesOn()
  const stream = follow(t, `${server.hooks}/events`)
  await until(() => stream.ids.length > 0, 'a stream')
  await load.stop()
  await assertKept(t, load, (text) => run(urls.NEW, text))
  const later = await run(urls.NEW, 'select min(id)::int as id from hooks.events where id > $1', [
    newest,
  ])
  t.ok(Number(later[0]?.['id']) > newest, 'ids go on')
})

async function newPostgres(t: Test) {
  const before = process.env['PATH']
  const folder = process.env['GATEHOUSE_TEST_NEW_POSTGRES']
  // The first on the PATH is taken.
  if (folder !== undefined) process.env['PATH'] = `${folder}:${before}`
  const cluster = await ownPostgres(t)
  process.env['PATH'] = before
  const [row] = await run(cluster.url(), 'show server_version')
  t.comment(`to PostgreSQL ${row?.['server_version']}`)
  return cluster
}

async function newestOf(url: string) {
  return Number((await run(url, 'select max(id)::int as id from hooks.events'))[0]?.['id'])
}

/** A database of the same name on each server. */
async function gatehouseDatabase(cluster: Cluster) {
  await run(cluster.url(), 'create database gatehouse')
  return cluster.url('gatehouse')
}

/** The texts of the shell's blocks of a section. */
function blocksOf(heading: string) {
  const text = readFileSync(join(ROOT, 'docs', 'cluster.md'), 'utf8')
  const section = text.slice(text.indexOf(heading))
  return allIn(section, /^ *```sh\n(.*?)^ *```$/gms)
}

function sh(commands: string | undefined, env: Record<string, string>) {
  const folder = postgresPrograms() ?? dirname(process.execPath)
  const PATH = `${folder}:${process.env['PATH']}`
  const { status, stdout, stderr } = spawnSync('sh', ['-ec', commands ?? 'false'], {
    cwd: ROOT,
    env: { ...env, PATH },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`status ${status}: ${stderr}`)
  return stdout.trim()
}
