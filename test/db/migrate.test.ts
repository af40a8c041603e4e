import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import { ROOT } from '../helpers/program.ts'
import type { Env } from '../helpers/program.ts'

const LOOPBACK = { HOOKS_ADDR: '127.0.0.1:0', LINKS_ADDR: '127.0.0.1:0', OPS_ADDR: '127.0.0.1:0' }

const files = readdirSync(join(ROOT, 'sql/migrations')).toSorted()
const expected = files.map((file) => ({
  number: Number(file.slice(0, 4)),
  name: file.replace(/\.sql$/, ''),
  sha256: createHash('sha256')
    .update(readFileSync(join(ROOT, 'sql/migrations', file)))
    .digest('hex'),
}))
const first = expected[0]?.name ?? ''

const LIST = 'select number, name, sha256 from gatehouse.migrations order by number'
const SCHEMAS = `select nspname as name from pg_namespace where nspname in ('hooks', 'links', 'ops')`

await eachBackend(t, 'each migration is applied once and recorded', async (t: Test, backend) => {
  const env = await backend.env(t)
  const before = await runCli(['migrate'], { env })
  t.match(before, { code: 0, stderr: '' })
  t.same(
    lines(before.stdout),
    expected.map(({ name }) => `applied ${name}`),
  )
  const rows = await backend.query(env, LIST)
  t.same(rows, expected)
  const again = await runCli(['migrate'], { env })
  t.match(again, { code: 0, stdout: 'nothing to apply\n', stderr: '' })
  const one = await backend.query(
    env,
    'select count(*)::int as n, max(applied_at) as at from gatehouse.migrations',
  )
  t.match(one, [{ n: expected.length, at: Date }])
})

t.test('several processes migrate one empty database at once', async (t) => {
  const [, backend] = backends
  const env = await backend.env(t)
  const results = await Promise.all([1, 2, 3].map(() => runCli(['migrate'], { env })))
  for (const { code, stderr } of results) t.match({ code, stderr }, { code: 0, stderr: '' })
  const applied = results.flatMap(({ stdout }) =>
    lines(stdout).filter((line) => line !== 'nothing to apply'),
  )
  t.same(
    applied.toSorted(),
    expected.map(({ name }) => `applied ${name}`),
    'each one by one of them',
  )
  t.same(await backend.query(env, LIST), expected)
})

await eachBackend(t, 'a migration that changed since is refused', async (t: Test, backend) => {
  const env = await migrated(t, backend)
  await backend.query(env, 'update gatehouse.migrations set sha256 = $1 where number = 1', [
    'other',
  ])
  const line = new RegExp(`^gatehouse: Migration ${first} was applied with another text: .+\\n$`)
  await refused(t, backend, env, line)
  t.match(await backend.query(env, LIST), [{ sha256: 'other' }], 'and nothing was changed')
})

await eachBackend(t, 'a database ahead of the program is refused', async (t: Test, backend) => {
  const env = await migrated(t, backend)
  const text = `insert into gatehouse.migrations (number, name, sha256) values (9999, '9999_future', '')`
  await backend.query(env, text)
  await refused(t, backend, env, /^gatehouse: The database has migration 9999_future, .*newer.*\n$/)
})

await eachBackend(t, 'a migration that fails leaves nothing behind', async (t: Test, backend) => {
  const env = await backend.env(t)
  // Fails in the middle of the first migration, after its schema and some tables were made.
  await backend.query(
    env,
    `create function refuse() returns event_trigger language plpgsql as $$
     begin
       if to_regclass('hooks.settings') is not null then raise 'no room for settings'; end if;
     end $$`,
  )
  await backend.query(
    env,
    'create event trigger refuse on ddl_command_end execute function refuse()',
  )
  const failed = await runCli(['migrate'], { env })
  t.equal(failed.code, 1)
  t.match(failed.stderr, /^gatehouse: .*no room for settings.*\n$/)
  t.same(failed.stdout, '')
  t.same(await backend.query(env, SCHEMAS), [], 'no schema')
  t.same(await backend.query(env, LIST), [], 'no record')
  await backend.query(env, 'drop event trigger refuse')
  t.match(await runCli(['migrate'], { env }), { code: 0, stderr: '' })
  t.same(await backend.query(env, LIST), expected)
})

/** No command uses such a database: each says why in one line and fails. */
async function refused(t: Test, backend: Backend, env: Env, line: RegExp): Promise<void> {
  // Opening an embedded database takes a second, and the refusal comes from the same place.
  const others = backend.name === 'embedded' ? [] : [['migrate'], ['provider', 'list']]
  for (const command of [['serve', 'hooks'], ...others]) {
    const result = await runCli(command, { env: { ...LOOPBACK, ...env } })
    t.match(
      result,
      { code: 1, stdout: '', stderr: line },
      `${command.join(' ')} on ${backend.name}`,
    )
  }
  const check: CliResult = await runCli(['check'], { env })
  t.match(check, { code: 1, stdout: /^FAIL {2}migrations: /m }, 'check')
}

async function migrated(t: Parameters<Backend['env']>[0], backend: Backend): Promise<Env> {
  const env = await backend.env(t)
  const { code, stderr } = await runCli(['migrate'], { env })
  if (code !== 0) throw new Error(`migrate ended with ${code}, expected 0: ${stderr}`)
  return env
}

function lines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '')
}
