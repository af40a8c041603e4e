import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { migrate } from '../../db/migrate.ts'
import { openDatabase } from '../../db/open.ts'
import { createLog } from '../../kernel/log.ts'
import { backends, onPostgres, type Backend, type Row } from '../helpers/backends.ts'
import { check } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { ROOT, inLongRun, type Env } from '../helpers/program.ts'
import { secret, transcript } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { signatureHeaders } from '../helpers/hooks.ts'

/** Rows of a database of the first release, which had so many migrations. */
const ROWS = readFileSync(join(ROOT, 'test/fixtures/databases/first-release.sql'), 'utf8')
const FIRST_RELEASE = 3
/** SHA-256 of the token of generic:fixture-token, which nobody knows any more. */
const TOKEN_HASH = '9d8fac47730eb372c327b65cd76e9c157408e4c4ca90cf72a131383b7d834036'

/** The rows as if made yesterday (retention counts), with a token that we know. */
function rowsWith(token: string) {
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  return ROWS.replaceAll('2026-11-21', yesterday).replace(
    TOKEN_HASH,
    createHash('sha256').update(token).digest('hex'),
  )
}

const TABLES = [
  'gatehouse.migrations',
  ...new Set([...ROWS.matchAll(/^INSERT INTO ([\w.]+)/gm)].map(([, name]) => String(name))),
]

/** An empty database becomes one of the first release. */
async function migrateToFirstRelease(env: Env) {
  const log = createLog(
    (text) => transcript('log', text, 'upgrade'),
    () => new Date(),
  )
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const { db, [Symbol.asyncDispose]: close } = await openDatabase(where, log)
  await migrate(db, FIRST_RELEASE)
  await close()
}

/** The rows of each of these tables, by its name. */
async function contents(backend: Backend, env: Env) {
  const each = TABLES.map((name) => `select '${name}' as name, to_jsonb(t) as row from ${name} t`)
  const rows = await backend.query(env, each.join(' union all '))
  return Object.fromEntries(
    TABLES.map((table) => {
      const own = rows.filter(({ name }) => name === table).map(({ row }) => row as Row)
      return [table, own]
    }),
  )
}

const CHANGING = new Set(['scheduled_at', 'clicks', 'clicked_at', 'removed_at'])

/** The rows with the columns of the first release alone, in an order that does not depend on others. */
function firstColumns(rows: readonly Row[], before: readonly Row[]) {
  // Every start claims a scheduled session, and lists the checks of its inventory; a visit counts.
  const names = Object.keys(before[0] ?? {}).filter((name) => !CHANGING.has(name))
  return rows.map((row) => JSON.stringify(names.toSorted().map((name) => row[name]))).toSorted()
}

await onPostgres(t, 'the first release becomes the present one', becomesPresent)
await inLongRun(t, 'and on the embedded engine', (t: Test) => becomesPresent(t, backends[0]))

async function becomesPresent(t: Test, backend: Backend) {
  const env = await backend.emptyEnv(t)
  const [token, key] = [secret('upgrade-token'), secret('upgrade-code-host')]
  await migrateToFirstRelease(env)
  await backend.query(env, rowsWith(token))
  const before = await contents(backend, env)
  const events = before['hooks.events'] ?? []
  t.equal(events.length, 14)
  if (backend.name === 'postgres') {
    t.match((await check(env)).about('migrations'), [/^ok 3 applied/])
  }

  const first = await startServer(t, { env })
  for (const { id, payload } of events) {
    const { status, body } = await request(`${first.hooks}/log/${id}/payload`)
    t.equal(status, 200)
    t.equal(`\\x${body.toString('hex')}`, payload, `event ${id} byte for byte`)
  }
  const { text: settings } = await request(`${first.hooks}/settings`)
  t.match(settings, /value="1234"/, 'the settings')
  t.match(settings, /value="1500"/)
  const { text: rejected } = await request(`${first.hooks}/log?rejected=1`)
  t.match(rejected, 'wrong secret or altered body')
  for (const base of [first.hooks, first.links, first.ops]) {
    t.equal((await request(`${base}/healthz`)).status, 200)
  }
  const { status, headers } = await request(`${first.links}/docs/page`)
  t.match([status, headers['location']], [302, 'https://example.com/docs/page'], 'a link')
  await first.stop()

  const after = await contents(backend, env)
  for (const [name, rows] of Object.entries(before)) {
    const now = after[name] ?? []
    const [kept, all] = [firstColumns(now, rows), firstColumns(rows, rows)]
    // A start adds migrations and an operator, and a visit counts.
    if (name.startsWith('hooks.')) t.same(kept, all, `every row of ${name}`)
    else t.ok(new Set(kept).isSupersetOf(new Set(all)), `every row of ${name}`)
  }
  const second = await startServer(t, { env: { ...env, HOOKS_CODE_HOST_SECRET: key } })
  const deliver = (path: string, headers: Readonly<Record<string, string>>) =>
    request(`${second.hooks}/webhooks/${path}`, { method: 'POST', headers, body: '{"n":1}' })
  const json = { 'Content-Type': 'application/json' }
  const bearer = { ...json, Authorization: `Bearer ${token}` }
  const next = await deliver('generic/fixture-token', bearer)
  t.equal(next.status, 202, 'the token still works')
  t.match(next.json(), { id: 16 }, 'ids go on')
  const signed = { ...json, ...signatureHeaders('code_host', '{"n":1}', { secret: key }) }
  const again = await deliver('code_host', { ...signed, 'X-GitHub-Delivery': 'fixture-2' })
  t.equal(again.status, 202)
  t.match(again.json(), { id: 2 }, 'a repeated delivery is known')
}
