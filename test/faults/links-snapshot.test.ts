import { createHash } from 'node:crypto'
import {
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { t } from 'tap'
import { check, FREE, runCli } from '../helpers/cli.ts'
import { allIn, request } from '../helpers/http.ts'
import { leadsTo, linksServer, makeLink, visit } from '../helpers/links.ts'
import { linesOf } from '../helpers/outages.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { startServer } from '../helpers/server.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const FUTURE = '2099-01-31T12:00:00.000Z'

const cluster = await ownPostgres(t)
const url = await cluster.createDatabase()
const folder = await temporaryFolder(t)
const env = { DATABASE_URL: url, GATEHOUSE_DATA_DIR: folder }
const file = join(folder, 'links-snapshot.jsonl')

const first = await startServer(t, { services: ['links'], env })
const ann = await linksServer(first, env).user('ann')
await makeLink(ann, 'open')
await makeLink(ann, 'hidden', { visibility: 'private' })
await makeLink(ann, 'kept', { visibility: 'secure' })
await makeLink(ann, 'numbered', { url: 'https://issues.test/{1}' })
await makeLink(ann, 'ending', { expires_at: FUTURE })
await makeLink(ann, 'limited', { max_visits: 1_000 })
await makeLink(ann, 'over', { archived: true })
await leadsTo(first.links, '/open')
await first.stop()

// One is of a crash, the other one is being written by another instance.
const PARTS = { old: `${file}.old.part`, young: `${file}.young.part` }
for (const part of Object.values(PARTS)) writeFileSync(part, '')
const LONG_AGO = (Date.now() - 2 * HOUR_MS) / 1_000
utimesSync(PARTS.old, LONG_AGO, LONG_AGO)

// A start writes the snapshot at once. The first server's was written while the links were made.
rmSync(file, { force: true })
const second = await startServer(t, { services: ['links'], env })
const slugs = () => allIn(readFileSync(file, 'utf8'), /"slug":"([^"]+)"/g)
await until(() => existsSync(file), 'the snapshot')
await second.stop()

t.test('a snapshot has no secure link, none that is over, and none with a limit', async (t) => {
  t.same(slugs(), ['open', 'ending', 'hidden', 'numbered'], 'the most used link is the first')
  t.equal(statSync(file).mode & 0o777, 0o600)
  const parts = readdirSync(folder).filter((name) => name.endsWith('.part'))
  t.same(
    parts,
    [basename(PARTS.young)],
    'it was put in place as a whole; of a crash nothing is left',
  )
})

t.test('links of the snapshot are served until the database is back', async (t) => {
  await cluster.stop()
  const findings = await check(env, ['hooks', 'links'])
  t.match(findings.about('database'), [/^warn .*ECONNREFUSED.*; .*serve gives 4 links of 20/])
  t.equal(findings.code, 0, 'a start is not refused')
  const endsAt = Date.now() + 5_000
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(0, -1)
  const soon = lines.map((line) =>
    line.replace(`"ends_at":${Date.parse(FUTURE)}`, `"ends_at":${endsAt}`),
  )
  writeFileSync(file, signed(soon))

  const options = { services: ['hooks', 'links'] as const, env }
  const server = await startServerProcess(t, options)
  const base = server.links
  t.throws(() => server.hooks, 'only links listen')
  t.equal(await leadsTo(base, '/open'), 'https://open.test/')
  t.equal(await leadsTo(base, '/Open.'), 'https://open.test/')
  t.equal(await leadsTo(base, '/hidden'), 'https://hidden.test/')
  t.equal(await leadsTo(base, '/numbered/7'), 'https://issues.test/7')
  await until(() => Date.now() > endsAt, 'the expiry')
  t.equal(await leadsTo(base, '/ending'), 410, 'the clock is compared')
  for (const path of ['/kept', '/limited', '/over', '/nothing', '/-/', '/healthz']) {
    const answer = await visit(base, path, { timeoutMs: 20_000 })
    t.equal(answer.status, 503, `${path} needs the database`)
    t.match(answer.headers, { 'retry-after': /^\d+$/, location: undefined })
  }
  const api = await request(`${base}/api/v1/links`, {
    headers: { authorization: `Bearer ${ann.token}` },
    timeoutMs: 20_000,
  })
  t.equal(api.status, 503)
  await until(() => said('clicks not written, kept for later').length > 0, 'the clicks to wait')

  await cluster.start()
  const ready = await until(() => said('ready')[0], 'all services', 60_000)
  const [, hooks = ''] = /hooks=(\S+)/.exec(String(ready['addresses'])) ?? []
  t.equal((await request(`${hooks}/healthz`)).status, 200, 'the other service listens, too')
  t.equal((await request(`${base}/healthz`)).status, 200)
  t.equal(await leadsTo(base, '/kept'), 'https://kept.test/', 'the local operator is an admin')
  t.equal(await leadsTo(base, '/limited'), 'https://limited.test/')
  t.equal(await leadsTo(base, '/nothing'), 404)
  await makeLink({ api: linksServer(server, env).api(ann.token) }, 'new')
  t.equal(await leadsTo(base, '/new'), 'https://new.test/')
  const clicks = await until(async () => {
    const [row] = await run(url, "select clicks::int from links.links where slug = 'open'")
    return Number(row?.['clicks']) > 2 && Number(row?.['clicks'])
  }, 'the clicks of the outage')
  t.equal(clicks, 3, 'one before it, and two while the database was away')
  t.equal(said('database out of reach: links are served from their snapshot').length, 1)
  t.equal(said('database in reach: all services start').length, 1)

  function said(msg: string) {
    return linesOf(server).filter((line) => line['msg'] === msg)
  }
})

t.test('a snapshot that can not be used is said, and the start is refused', async (t) => {
  await cluster.stop()
  const good = readFileSync(file, 'utf8')
  const [head = '', ...rest] = good.trimEnd().split('\n').slice(0, -1)
  const old = JSON.stringify({
    ...JSON.parse(head),
    written: new Date(Date.now() - 8 * DAY_MS).toISOString(),
  })
  const other = JSON.stringify({ ...JSON.parse(head), format: 'gatehouse links 0' })
  const elsewhere = new URL(url)
  elsewhere.pathname = '/elsewhere'
  const cases = [
    ['damaged', good.replace('https://open', 'https://evil'), env, /it is damaged/],
    ['cut off', good.slice(0, good.length / 2), env, /it is damaged/],
    ['too old', signed([old, ...rest]), env, /7 days are the limit/],
    ['of another version', signed([other, ...rest]), env, /another version/],
    ['of another database', good, { ...env, DATABASE_URL: elsewhere.href }, /another database/],
  ] as const
  for (const [name, text, variables, reason] of cases) {
    writeFileSync(file, text)
    const { code, stdout, stderr } = await runCli(['serve', 'links'], {
      env: { ...FREE, ...variables },
    })
    t.match({ code, stdout }, { code: 1, stdout: '' }, name)
    t.equal(stderr.match(/snapshot of links not used/g)?.length, 1, `${name}: one line`)
    t.match(stderr, reason)
    t.match(stderr, /ECONNREFUSED/, `${name}: the database is the reason`)
  }
  writeFileSync(file, '')
  t.equal((await check(env, ['links'])).code, 1, 'an empty one')
  writeFileSync(file, good)
  t.equal((await check(env, ['hooks'])).code, 1, 'hooks alone needs the database')
  await cluster.start()
})

t.test('a stop ends a server that waits for its database', async (t) => {
  await cluster.stop()
  const server = await startServerProcess(t, { services: ['links'], env })
  t.equal(await leadsTo(server.links, '/open'), 'https://open.test/')
  t.match(await server.stop(), { code: 0 })
  t.match(server.logs().join('\n'), /clicks lost/, 'what can not be kept is said')
  await cluster.start()
})

t.test('a database that does not fit ends a server that waited for it', async (t) => {
  await run(url, "update gatehouse.migrations set sha256 = 'another' where number = 2")
  await cluster.stop()
  const server = await startServerProcess(t, { services: ['links'], env, mayExit: true })
  await cluster.start()
  t.match(await server.exited, { code: 1 })
  t.match(server.logs().join('\n'), /0002_links was applied with another text/)
})

/** Lines with their checksum. */
function signed(lines: readonly string[]) {
  const text = lines.map((line) => `${line}\n`).join('')
  return `${text}${createHash('sha256').update(text).digest('hex')}\n`
}
