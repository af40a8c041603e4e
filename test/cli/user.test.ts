import { t } from 'tap'
import type { Test } from 'tap'
import { onPostgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import type { CliResult } from '../helpers/cli.ts'
import type { Env } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'

const user = (env: Env, ...args: readonly string[]): Promise<CliResult> =>
  runCli(['user', ...args], { env })

await onPostgres(t, 'user commands in a process of their own', async (t: Test, backend) => {
  await story(t, await backend.env(t), false)
})

await onPostgres(t, 'user commands beside a running server', async (t: Test, backend) => {
  const env = await backend.env(t)
  await startServer(t, { services: ['links'], env })
  await story(t, env, true)
})

async function story(t: Test, env: Env, served: boolean): Promise<void> {
  const added = await user(env, 'add', ' Ann@Example.com', '--name', 'Ann Example')
  t.match(added, { code: 0, stdout: '', stderr: /^ann@example\.com is a user now; .*\n$/ })
  t.match(added.stderr, 'gatehouse token create ann@example.com', 'says what comes next')
  t.match(await user(env, 'add', 'root@example.com', '--admin'), { code: 0, stdout: '' })

  const listed = await user(env, 'list', '--json')
  t.match(listed, { code: 0, stderr: '' })
  const users: readonly Readonly<Record<string, unknown>>[] = JSON.parse(listed.stdout)
  const [ann, ...others] = users
  t.same(Object.keys(ann ?? {}), ['id', 'email', 'display_name', 'role', 'created_at'])
  t.match(ann, { email: 'ann@example.com', display_name: 'Ann Example', role: 'user' })
  t.match(ann, { id: /^[0-9a-f-]{36}$/, created_at: /^\d{4}-.*\.\d{3}Z$/ })
  // A server makes the local operator when it starts.
  const operator = { email: 'operator@localhost', role: 'admin' }
  const root = { email: 'root@example.com', display_name: 'root', role: 'admin' }
  t.match(others, served ? [operator, root] : [root])
  t.equal(others.length, served ? 2 : 1)

  const refusals: readonly (readonly [readonly string[], RegExp])[] = [
    [['add', 'ANN@example.com'], /there is a user with this e-mail address already/],
    [['add', 'ann'], /must look like name@example\.com/],
    [['add', 'bob@example.com', '--name', 'x'.repeat(101)], /1 to 100 characters/],
    [
      ['role', 'nobody@example.com', 'admin'],
      /no user has the e-mail address "nobody@example\.com"/,
    ],
  ]
  // A process that opens an embedded database takes a second; the rules are the same ones.
  const alone = !served && env['DATABASE_URL'] === undefined
  for (const [args, reason] of alone ? refusals.slice(0, 1) : refusals) {
    const { code, stdout, stderr } = await user(env, ...args)
    t.same({ code, stdout, lines: stderr.split('\n').length }, { code: 1, stdout: '', lines: 2 })
    t.match(stderr, new RegExp(`^gatehouse: .*${reason.source}`), args.join(' '))
  }

  const promoted = await user(env, 'role', 'Ann@example.com', 'admin')
  t.match(promoted, { code: 0, stdout: '', stderr: 'ann@example.com has role admin now\n' })
  t.match(await user(env, 'role', 'root@example.com', 'user'), { code: 0 })
  const { stdout } = await user(env, 'list')
  t.match(stdout, /^EMAIL +NAME +ROLE +CREATED\nann@example\.com +Ann Example +admin +\d{4}-/)
  t.match(stdout, /^root@example\.com +root +user +\d{4}-/m)
}

t.test('wrong usage', async (t) => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /Missing action/],
    [['remove', 'a@example.com'], /Unknown action "remove"/],
    [['add'], /Missing EMAIL/],
    [['add', 'a@example.com', 'b@example.com'], /Too many arguments/],
    [['add', 'a@example.com', '--json'], /"user add" takes no --json/],
    [['add', 'a@example.com', '--role', 'admin'], /--role/],
    [['list', 'a@example.com'], /Too many arguments/],
    [['list', '--admin'], /"user list" takes no --admin/],
    [['role'], /Missing EMAIL/],
    [['role', 'a@example.com'], /Missing ROLE/],
    [['role', 'a@example.com', 'owner'], /ROLE must be user or admin/],
  ]
  for (const [args, reason] of cases) {
    const result = await runCli(['user', ...args])
    t.match(result, { code: 2, stdout: '', stderr: reason }, args.join(' '))
  }
})
