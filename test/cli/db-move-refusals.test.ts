import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import type { Owner } from '../helpers/owner.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { runCli } from '../helpers/cli.ts'
import type { Env } from '../helpers/program.ts'
import { freePort } from '../helpers/free-port.ts'
import { run, sharedPostgres } from '../helpers/postgres.ts'
import { secret } from '../helpers/secrets.ts'
import { startServer } from '../helpers/server.ts'
import { contentsOf } from '../helpers/transfer-check.ts'

const [embedded, postgres] = backends

const source = await embedded.env(t)

t.test('wrong usage', async (t) => {
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [['db'], /Missing action/],
    [['db', 'copy'], /Unknown action "copy"/],
    [['db', 'move'], /Missing --to URL/],
    [['db', 'move', 'postgres://x/y'], /Too many arguments/],
    [['db', 'move', '--to', 'mysql://x/y'], /--to must be a postgres:\/\/ URL/],
    [['db', 'move', '--to', 'postgres://u:p@h:port/y'], /--to must be .*: it is no such URL\n/],
  ]
  for (const [args, line] of wrong) {
    t.match(
      await runCli(args, { env: source }),
      { code: 2, stdout: '', stderr: line },
      args.join(' '),
    )
  }
})

t.test('a source that there is not', async (t) => {
  const folder = join(await temporaryFolder(t), 'none')
  const move = ['db', 'move', '--to', 'postgres://127.0.0.1:1/x']
  const absent = await runCli(move, { env: { GATEHOUSE_DATA_DIR: folder } })
  t.match(absent, {
    code: 1,
    stderr: /^gatehouse: there is no database in .*none: nothing to move\n$/,
  })
  t.notOk(existsSync(folder), 'nothing was made')
  const unknown = `${move[3]}?target_session_attrs=none`
  t.match(await runCli(['db', 'move', '--to', unknown], { env: source }), {
    code: 1,
    stderr: /^gatehouse: target_session_attrs none is not supported\n$/,
  })
  const server = { ...source, DATABASE_URL: 'postgres://127.0.0.1:1/x' }
  t.match(await runCli(move, { env: server }), {
    code: 1,
    stderr: /^gatehouse: DATABASE_URL is set: .*\n$/,
  })
})

t.test('a source that a server runs on', async (t) => {
  const env = await embedded.env(t)
  await startServer(t, { services: ['links'], env })
  const line = /^gatehouse: "db move" has the database to itself: stop the server, .*\n$/
  const target = await postgres.env(t)
  await refused(t, target, line, env)
})

t.test('a server that can not be reached', async (t) => {
  const password = secret('target-password')
  const url = `postgres://someone:${password}@127.0.0.1:${await freePort()}/x`
  const line =
    /^gatehouse: the server can't be reached \(.*ECONNREFUSED.*\); try again: nothing was moved\n$/
  t.match(await runCli(['db', 'move', '--to', '-'], { env: source, input: `${url}\n` }), {
    code: 1,
    stderr: line,
  })
})

t.test('a target with content is left as it is', async (t) => {
  const target = await postgres.env(t)
  await runCli(['user', 'add', 'ann@example.com'], { env: target })
  const before = await contentsOf(postgres, target)
  await refused(
    t,
    target,
    /^gatehouse: the server's database must be empty, but links\.users holds rows already: /,
  )
  t.same(await contentsOf(postgres, target), before)
  await postgres.query(target, 'delete from links.users')
  await postgres.query(target, `update hooks.providers set enabled = false where name = 'chat'`)
  await refused(t, target, /hooks\.providers holds rows already/, source)
})

t.test('a target of another version', async (t) => {
  const newer = await postgres.env(t)
  await postgres.query(newer, `insert into gatehouse.migrations values (9999, '9999_future', '')`)
  await refused(t, newer, /^gatehouse: The database has migration 9999_future, .* newer/)

  const older = await atMigration(t, 8)
  await postgres.query(older, `insert into hooks.endpoints values ('a', sha256('a'), true)`)
  await refused(
    t,
    older,
    /^gatehouse: the server's database must be empty, but hooks\.endpoints holds rows already: /,
  )
  const level = 'select max(number)::int as level from gatehouse.migrations'
  t.same(await postgres.query(older, level), [{ level: 8 }], 'not migrated either')
  await postgres.query(older, 'delete from hooks.endpoints')
  const moved = await runCli(['db', 'move', '--to', older['DATABASE_URL'] ?? ''], { env: source })
  t.match(moved, { code: 0 }, 'an empty one is brought up to date')
})

t.test('a target without rights, with another encoding', async (t) => {
  const databases = await sharedPostgres()
  const target = await postgres.emptyEnv(t)
  const url = new URL(target['DATABASE_URL'] ?? '')
  const role = `guest_${url.pathname.slice(-8)}`
  const password = secret('guest-password')
  await run(databases.url(), `create role ${role} login password '${password}'`)
  t.teardown(() => run(databases.url(), `drop role ${role}`))
  url.username = role
  url.password = password
  await refused(
    t,
    { DATABASE_URL: url.href },
    /^gatehouse: the server refuses \(permission denied for database .*\); nothing was moved\n$/,
  )
  url.password = secret('wrong-password')
  await refused(
    t,
    { DATABASE_URL: url.href },
    /^gatehouse: the server .*password authentication failed.*\n$/,
  )

  const latin = new URL(target['DATABASE_URL'] ?? '')
  latin.pathname = `${latin.pathname}_latin`
  await run(
    databases.url(),
    `create database ${latin.pathname.slice(1)} template template0 encoding 'LATIN1' locale 'C'`,
  )
  t.teardown(() => databases.dropDatabase(latin.href))
  await refused(
    t,
    { DATABASE_URL: latin.href },
    /^gatehouse: the database has the encoding LATIN1; make one with UTF8\n$/,
  )
})

/** A server's database as an older program left it. */
async function atMigration(t: Owner, through: number): Promise<Env> {
  const { openClient } = await import('../../db/client.ts')
  const { migrate } = await import('../../db/migrate.ts')
  const env = await postgres.emptyEnv(t)
  const db = openClient({ target: env['DATABASE_URL'] ?? '', deadlineMs: 5_000, connections: 1 })
  await migrate(db, through)
  await db.close()
  return env
}

async function refused(t: Test, target: Env, line: RegExp, from: Env = source): Promise<void> {
  const result = await runCli(['db', 'move', '--to', target['DATABASE_URL'] ?? ''], { env: from })
  t.match(result, { code: 1, stdout: '', stderr: line })
  t.equal(result.stderr.trimEnd().split('\n').length, 1, 'in one line')
}
