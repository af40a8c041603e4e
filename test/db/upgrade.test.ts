import { hash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import { createLog } from '../../kernel/log.ts'
import { onPostgres, embedded, type Backend, type Row } from '../helpers/backends.ts'
import { check, runOk } from '../helpers/cli.ts'
import { allIn, request } from '../helpers/http.ts'
import { ROOT, inLongRun, type Env } from '../helpers/program.ts'
import { keepSecret, transcript } from '../helpers/secrets.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { deliver, post, SIGNED_ENV, type Ack } from '../helpers/hooks.ts'
import { identity } from '../helpers/links.ts'
import { apiOf, openApiOf, operationsOf, type Api } from '../helpers/api.ts'
import { FIXTURE_KEY, shopifyHeaders } from '../fixtures/databases/senders.ts'

const FOLDER = join(ROOT, 'test/fixtures/databases')

/** The migrations of the releases so far. Databases have them: a change is a new file, and a release adds its line. */
const RELEASED = {
  '0001_hooks.sql': '5d4e84fc185f7de7213e89110ca2ec4828f5f85a249d9f5dcde11ef060f06124',
  '0002_links.sql': '6af88a1a7a9653bfff798502f388a3d69f82be61a7abae3fee58bbec8adf7e59',
  '0003_ops.sql': '2618eab76b66408575d162b85e709446a006f20c4359de33ffb3a894b4be7fa2',
  '0004_audit.sql': 'b424975e1376018e8c3c66671638cfd6ce6465110884017da3b982c50c578616',
  '0005_notices.sql': 'b392ff6795fc4a0330fcf96230b9295e05e34b80454a6b00b3bcd720eb5c80e2',
}

t.test('a released migration is as it was', (t) => {
  for (const [file, sha256] of Object.entries(RELEASED)) {
    const text = readFileSync(join(ROOT, 'sql/migrations', file))
    t.equal(hash('sha256', text), sha256, `${file} is released: a change is a new file`)
  }
  t.end()
})

/** The rows of a database of a release, which had so many migrations, and the tables that they are of. */
type Release = {
  name: string
  migrations: number
  rows: string
  tables: readonly string[]
}

function releaseOf(file: string) {
  const text = readFileSync(join(FOLDER, file), 'utf8')
  const [, name = '', day = '', last] =
    /^-- (\S+): .* on (\S+), .* 1 to (\d+)\.$/m.exec(text) ?? []
  // As if made yesterday: retention counts.
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  const tables = allIn(text, /^INSERT INTO ([\w.]+)/gm)
  return {
    name,
    migrations: Number(last),
    rows: text.replaceAll(day, yesterday),
    tables: [...new Set(tables)],
  }
}

/** An empty database becomes one of the release. */
async function fill(backend: Backend, env: Env, { migrations, rows }: Release) {
  const log = createLog(
    (text) => transcript('log', text, 'upgrade'),
    () => new Date(),
  )
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const { db, [Symbol.asyncDispose]: close } = await openDatabase(where, log)
  await migrate(db, migrations)
  await close()
  await backend.query(env, rows)
}

type Contents = Readonly<Record<string, readonly Row[]>>

/** The rows of each of these tables, by its name. */
async function contents(backend: Backend, env: Env, { tables }: Release): Promise<Contents> {
  const each = tables.map((name) => `select '${name}' as name, to_jsonb(t) as row from ${name} t`)
  const rows = await backend.query(env, each.join(' union all '))
  return Object.fromEntries(
    tables.map((table) => {
      const own = rows.filter(({ name }) => name === table).map(({ row }) => row as Row)
      return [table, own]
    }),
  )
}

/** The rows with the columns of the release alone, in an order that does not depend on others. */
function firstColumns(rows: readonly Row[], before: readonly Row[]) {
  const names = Object.keys(before[0] ?? {}).toSorted()
  return rows.map((row) => JSON.stringify(names.map((name) => row[name]))).toSorted()
}

for (const release of readdirSync(FOLDER)
  .filter((file) => file.endsWith('.sql'))
  .map(releaseOf)) {
  const upgrades = (t: Test, backend: Backend) => becomesPresent(t, backend, release)
  await onPostgres(t, `a database of ${release.name} becomes a present one`, upgrades)
  await inLongRun(t, `${release.name}, on the embedded engine`, (t: Test) => upgrades(t, embedded))
}

async function becomesPresent(t: Test, backend: Backend, release: Release) {
  const env: Env = {
    ...SIGNED_ENV,
    ...(await backend.emptyEnv(t)),
    GATEHOUSE_SECRET_KEY: FIXTURE_KEY,
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8',
  }
  await fill(backend, env, release)
  const before = await contents(backend, env, release)
  const events = before['hooks.events'] ?? []
  if (backend.name === 'postgres') {
    const [found] = (await check(env)).about('migrations')
    t.match(found, new RegExp(`^ok ${release.migrations} applied`))
  }
  await runOk('migrate', { env })
  const after = await contents(backend, env, release)
  for (const [name, rows] of Object.entries(before)) {
    t.same(firstColumns(after[name] ?? [], rows), firstColumns(rows, rows), `every row of ${name}`)
  }

  const first = await startServer(t, { env })
  for (const { id, payload } of events) {
    const { status, body } = await request(`${first.hooks}/log/${id}/payload`)
    t.equal(status, 200)
    t.equal(`\\x${body.toString('hex')}`, payload, `event ${id} byte for byte`)
  }
  const { text: settings } = await request(`${first.hooks}/settings`)
  t.match(settings, /value="1234"/, 'the settings')
  const visited = await request(`${first.links}/docs/page`)
  const { location } = visited.headers
  t.match([visited.status, location], [302, 'https://example.com/docs/page'], 'a link')
  await everyPageAnswers(t, first, env)
  const order = '{"order":8}'
  const sent = await post(first.hooks, 'generic/shopify', order, shopifyHeaders(order))
  t.match(sent, { status: 202, text: /"verified":true/ }, 'the secret of a sender still works')
  const newest = Math.max(...events.map(({ id }) => Number(id)))
  t.equal(sent.json<Ack>().id, newest + 1, 'ids go on')
  const known = events.find(({ provider }) => provider === 'code_host')
  const again = await deliver(first.hooks, 'code_host', '{"n":1}', {
    'X-GitHub-Event': 'push',
    'X-GitHub-Delivery': String(known?.['external_id']),
  })
  t.match(again.json(), { id: known?.['id'] }, 'a repeated delivery is known')
  await first.stop()
}

/** Reads every page that leads from the first one, and every answer of the APIs. */
async function everyPageAnswers(t: Test, server: TestServer, env: Env) {
  const words = ['token', 'create', 'ann@example.com']
  const { stdout } = await runOk(words, { env, secretShown: true })
  const token = keepSecret('api-token', stdout.trim().split('\n').at(-1) ?? '')
  for (const service of ['hooks', 'links', 'ops'] as const) {
    const pages = await brokenPages(server[service], service === 'links' ? '/-/' : '/')
    t.same(pages.broken, [], `the pages of ${service}`)
    t.ok(pages.count > 20, `${pages.count} pages of ${service}`)
    const api = apiOf(server[service], service === 'links' ? token : undefined)
    t.same(await brokenAnswers(server[service], api), [], `the API of ${service}`)
  }
}

/** Follows the links from a page on to those below it, one of each address and names of filters. */
async function brokenPages(base: string, start: string) {
  const headers = { accept: 'text/html', ...identity('ann@example.com') }
  const kinds = new Map([[start, start]])
  const broken: string[] = []
  for (const path of kinds.values()) {
    const { status, text } = await request(base + path, { headers })
    if (status !== 200) broken.push(`${status} ${path}`)
    for (const href of allIn(text, / href="([^"#]+)/g)) {
      const address = href.replaceAll('&amp;', '&')
      if (!address.startsWith(start) || /^\/(-\/)?(docs|assets|api)\b/.test(address)) continue
      const { pathname, searchParams } = new URL(address, base)
      const kind = `${pathname}?${[...searchParams.keys()].toSorted()}`
      if (!kinds.has(kind)) kinds.set(kind, address)
    }
  }
  return { broken, count: kinds.size }
}

/** Calls each operation that reads; what stands for a place in its path is taken from the list above it. */
async function brokenAnswers(base: string, api: Api): Promise<readonly string[]> {
  const document = openApiOf((await request(`${base}/api/openapi.yaml`)).text)
  const broken: string[] = []
  for (const { method, path } of operationsOf(document)) {
    if (method !== 'GET' || path === '/healthz') continue
    const [list = '', place] = path.replace('/api/v1', '').split(/\/\{(\w+)\}/)
    let address = path.replace('/api/v1', '')
    if (place !== undefined) {
      const { json } = await api<Readonly<Record<string, readonly Row[]>>>('GET', list)
      const [first] = Object.values(json).find((rows) => Array.isArray(rows)) ?? []
      const value = String(first?.[place] ?? first?.['id'] ?? first?.['name'])
      address = address.replace(`{${place}}`, encodeURIComponent(value))
    }
    const { status, text } = await api('GET', address)
    if (status !== 200) broken.push(`${status} ${address}: ${text.slice(0, 80)}`)
  }
  return broken
}
