import { existsSync, readdirSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { seedEmbedded, embedded, postgres } from '../helpers/backends.ts'
import { runCliProcess } from '../helpers/cli.ts'
import {
  brokenOf,
  createSender,
  lostOf,
  startLoad,
  storedEvents,
  type Load,
} from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { linksServer, makeLink, type Caller } from '../helpers/links.ts'
import { noFailureIn } from '../helpers/outages.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { ENGINE_FLAGS } from '../helpers/program.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { lacksSmallDisks, smallDisk } from './small-disk.ts'
import { until } from '../helpers/until.ts'

// When the disk of the database is full, whatever filled it:
// - nothing that was acknowledged is lost, and no row is half there;
// - a sender gets 503 with Retry-After, never 500; a change of a link gets 503 with its code;
// - pages, redirects and their clicks' counter go on; health says 503 while senders are refused;
// - with space it goes on by itself, without a restart;
// - a program that is started on a full disk ends with one line that says so, and starts with space;
// - when the log of the embedded engine can't be written at all, the program ends with one line;
// - a log that can't be written is lost and ends nothing;
// - a backup or an export that finds no space says so and leaves no file under its name.

const EMBEDDED_MIB = 160
const POSTGRES_MIB = 140
const SENDERS = 2
/** The load itself must not fill the disk before the test does, or again. */
const LOAD = { senders: SENDERS, size: 500, restMs: 20 }
const PAGES = {
  hooks: ['/', '/log', '/providers'],
  links: ['/-/', '/known+'],
  ops: ['/'],
} as const
const ANYWHERE = { HOOKS_ADDR: '127.0.0.1:0', LINKS_ADDR: '127.0.0.1:0', OPS_ADDR: '127.0.0.1:0' }
const NO_SPACE = /No space left on device|takes no changes: its disk is nearly full/

await t.test('the embedded engine', { skip: lacksSmallDisks() }, async (t) => {
  const disk = await smallDisk(t, EMBEDDED_MIB)
  const sender = createSender()
  await seedEmbedded({ GATEHOUSE_DATA_DIR: join(disk.seen, 'data') })
  const env = { ...sender.env, GATEHOUSE_DATA_DIR: join(disk.folder, 'data') }
  const program = [...disk.on, process.execPath, ...ENGINE_FLAGS, 'server.ts']
  const start = () => startServerProcess(t, { env, program })
  let server = await start()
  const seen = { GATEHOUSE_DATA_DIR: join(disk.seen, 'data') }
  const ann = await linksServer(server, seen).user('ann')
  const load = startLoad(t, { ...LOAD, base: () => server.hooks, sender })

  await t.test('without a restart', async (t) => {
    await fullAndFree(t, { server, load, ann, fill: () => disk.fill(), free: () => disk.free() })
    const said = server.logs().filter((line) => line.includes('takes no changes"'))
    t.equal(said.length, 1, 'the log says it once')
  })

  await t.test('with a crash meanwhile', async (t) => {
    disk.fill()
    await refused(load)
    await server.kill()
    const again = await runCliProcess(['serve'], { env: { ...ANYWHERE, ...env }, program })
    t.equal(again.code, 1)
    t.equal(again.stdout, '', 'it was never ready')
    const lines = again.stderr.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    t.equal(lines.length, 1, 'one line says why')
    t.match(lines[0], /^gatehouse: /)
    t.match(lines[0], NO_SPACE)
    disk.free()
    server = await start()
    await accepted(load)
  })

  await load.stop()
  t.same(await server.stop(), { code: 0, signal: null })
  // SQLite, which holds the folder, finds no file through /proc.
  const data = await temporaryFolder(t)
  await cp(join(disk.seen, 'data', 'pg'), join(data, 'pg'), { recursive: true })
  const stored = await storedEvents(embedded, { GATEHOUSE_DATA_DIR: data })
  t.same(lostOf(load.acked, stored), [], `all of ${load.acked.length} are there`)
  t.same(brokenOf(load.sent, stored), [])
  noFailureIn(t, server)
})

await t.test('a PostgreSQL server', async (t) => {
  const disk = await smallDisk(t, POSTGRES_MIB)
  const cluster = await ownPostgres(t, disk)
  const sender = createSender()
  const env = { ...sender.env, DATABASE_URL: await cluster.createDatabase() }
  const server = await startServer(t, { env })
  const ann = await linksServer(server, env).user('ann')
  const load = startLoad(t, { ...LOAD, base: () => server.hooks, sender })
  await fullAndFree(t, { server, load, ann, fill: () => disk.fill(), free: () => disk.free() })
  await load.stop()
  const stored = await storedEvents({ query: (_env, text) => run(env.DATABASE_URL, text) }, env)
  t.same(lostOf(load.acked, stored), [], `all of ${load.acked.length} are there`)
  t.same(brokenOf(load.sent, stored), [])
  noFailureIn(t, server)
})

await t.test('a file and a log that find no space', async (t) => {
  const disk = await smallDisk(t, 1)
  const env = await postgres.env(t)
  const withoutLog = ['sh', '-c', 'exec "$0" server.ts "$@" 2> /dev/full', process.execPath]
  const server = await startServerProcess(t, { services: ['links'], env, program: withoutLog })
  for (let n = 0; n < 3; n++) t.equal((await request(`${server.links}/healthz`)).status, 200)
  const ann = await linksServer(server, env).user('ann')
  for (let n = 0; n < 10; n++) await makeLink(ann, `link-${n}`, { title: `${n}`.repeat(200) })
  const program = [...disk.on, process.execPath, 'server.ts']
  disk.fill()
  const file = join(disk.folder, 'all.backup')
  const backup = await runCliProcess(['backup', file], { env, program })
  t.equal(backup.code, 1)
  t.match(backup.stderr, /^gatehouse: [^\n]*ENOSPC[^\n]*\n$/, 'one line')
  t.same(readdirSync(disk.seen), ['filler'], 'no file, and no half of one')
  disk.free()
  t.match(await runCliProcess(['backup', file], { env, program }), { code: 0 })
  t.ok(existsSync(join(disk.seen, 'all.backup')), 'with space there is one')

  const shell = ['sh', '-c', 'exec "$0" server.ts "$@" > /dev/full', process.execPath]
  const exported = await runCliProcess(['export'], { env, program: shell })
  t.equal(exported.code, 1)
  t.match(exported.stderr, /^gatehouse: [^\n]*ENOSPC[^\n]*\n$/, 'one line')
})

type Story = {
  server: TestServer
  load: Load
  ann: Caller
  fill(): void
  free(): void
}

/** The disk is filled under load, looked at, and freed. */
async function fullAndFree(t: Test, { server, load, ann, fill, free }: Story) {
  await makeLink(ann, 'known', { url: 'https://known.test/' })
  const visits = async () => (await request(`${server.links}/known`)).headers.location
  t.equal(await visits(), 'https://known.test/')
  await accepted(load)
  fill()
  await refused(load)
  for (const service of ['hooks', 'links', 'ops'] as const) {
    for (const path of PAGES[service]) {
      t.equal((await request(server[service] + path)).status, 200, `${service} ${path}`)
    }
  }
  for (const base of [server.hooks, server.links]) {
    const health = await request(`${base}/healthz`)
    t.match(health, { status: 503, headers: { 'retry-after': /^\d+$/ } }, 'health')
  }
  t.equal(await visits(), 'https://known.test/', 'a redirect')
  const asked = await lookups(server)
  for (let n = 0; n < 5; n++) {
    await refused(load)
    await visits()
  }
  const more = (await lookups(server)) - asked
  t.ok(more <= 1, `redirects from memory, whatever is refused: ${more} of 5 asked the database`)
  t.match(await refusedChange(ann), { status: 503, json: { code: 'UNAVAILABLE' } })
  free()
  await accepted(load)
  const healthy = async () => (await request(`${server.hooks}/healthz`)).status === 200
  await until(healthy, 'health to be good again', 20_000)
  await makeLink(ann, 'made-afterwards')
  for (const { status, type, retryAfter, text } of load.refused) {
    if (status === 503 && type === 'application/problem+json' && /^\d+$/.test(retryAfter ?? ''))
      continue
    t.fail(`a sender was answered ${status} ${type} ${retryAfter}: ${text}`)
  }
  t.notOk(
    load.refused.some(({ text }) => /space|extend|read-only|pg_wal/.test(text)),
    'no internals in an answer',
  )
}

/** How often a visit has asked the database. */
async function lookups(server: TestServer) {
  const { text } = await request(`${server.ops}/metrics`)
  return Number(/^gatehouse_links_lookups_total\{source="database"\} (\d+)/m.exec(text)?.[1])
}

/** A full disk may have a hole for a small row left: the change that is refused is a long one. */
async function refusedChange(ann: Caller) {
  let n = 0
  return until(async () => {
    const body = { slug: `more-${n++}`, url: 'https://more.test/', description: 'x'.repeat(900) }
    const answer = await ann.api('POST', '/links', body)
    return answer.status !== 201 && answer
  }, 'a change to be refused')
}

async function refused(load: Load) {
  const before = load.refused.length
  await until(() => load.refused.length > before + 4 * SENDERS, 'senders to be refused', 20_000)
}

async function accepted(load: Load) {
  const before = load.acked.length
  await until(() => load.acked.length > before + 20, 'deliveries to be accepted', 20_000)
}
