import { t } from 'tap'
import { ANN, auditOf, command, PROXIED } from '../helpers/audit.ts'
import { postgres } from '../helpers/backends.ts'
import { FREE, refuseCommands, runCli } from '../helpers/cli.ts'
import { postForm, startHooks } from '../helpers/hooks.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

await t.test('the command, beside a server and without one', async (t) => {
  const env = { ...FREE, ...(await postgres.env(t)) }
  await command(env, 0, 'provider', 'add', 'before', '--open')
  const server = await startServer(t, { services: ['hooks', 'links'], env })
  await command(env, 0, 'provider', 'add', 'beside', '--open')
  await command(env, 0, 'user', 'add', 'ann@example.com')
  await postForm(server.hooks, '/providers', { name: 'page', trust_mode: 'token' })

  const all = [
    'operator: provider add hooks generic:page',
    'command: user add links ann@example.com',
    'command: provider add hooks generic:beside',
    'command: user add links operator@localhost',
    'command: provider add hooks generic:before',
  ]
  const lines = await auditOf(env)
  for (const { at } of lines) t.equal(at, new Date(at).toISOString())
  const of = async (flags = '') =>
    (await auditOf(env, ...flags.split(' ').filter(Boolean))).map(
      ({ actor, action, service, subject }) => `${actor}: ${action} ${service} ${subject}`,
    )
  for (const [flags, expected] of [
    ['', all],
    ['--service links', [all[1], all[3]]],
    ['--service ops', []],
    ['--limit 1', all.slice(0, 1)],
    [`--since ${lines[1]?.at}`, all.slice(0, 2)],
    ['--since 1h', all],
    ['--since 2999-01-31T12:00:00Z', []],
  ] as const) {
    t.same(await of(flags), expected, flags)
  }

  await refuseCommands(t, { env, state: () => auditOf(env) }, [
    ['audit --service all', 2, '--service'],
    ['audit --limit 100001', 2, '--limit'],
    ['audit --since yesterday', 2, '--since'],
  ])
  const { stdout } = await runCli('audit --limit 2', { env })
  const [head = '', first = '', ...more] = stdout.split('\n')
  t.match(head, /^TIME {22}ACTOR {21}ACTION {16}SERVICE {2}SUBJECT$/)
  t.match(first, /^\S+Z {2}operator {18}provider add {10}hooks {4}generic:page$/)
  t.equal(more.length, 2)
  await server.stop()
  t.same(await of(), all, 'the same without a server')
})

await t.test('no change is made without its line, and no line is faked', async (t) => {
  const { base, env } = await startHooks(t, postgres, PROXIED)
  const sent = { name: 'ci', trust_mode: 'token' }
  const headers = { 'Remote-Email': `${'x'.repeat(1_000)}@example.com` }
  await expectStatus(200, postForm(base, '/providers', sent, headers))
  const [line] = await auditOf(env)
  t.equal(line?.actor, 'x'.repeat(300), 'what a proxy sends is cut')
  await postgres.query(env, `update audit.changes set subject = E'a\\nTIME'`)
  const { stdout } = await runCli('audit', { env })
  t.equal(stdout.trimEnd().split('\n').length, 2, 'no newline makes a line')

  const state = async () => (await runCli('provider list', { env })).stdout
  const before = await state()
  await postgres.query(env, 'alter table audit.changes add check (actor = $$nobody$$) not valid')
  const other = { ...sent, name: 'other' }
  await expectStatus(500, postForm(base, '/providers', other, ANN))
  t.match(await runCli('provider add lan --open', { env }), { code: 1 })
  t.equal(await state(), before)
})

await t.test('lines are kept for a time, and so many at most', async (t) => {
  const env = { ...FREE, ...(await postgres.env(t)) }
  const fill = (count: number, days: number) =>
    postgres.query(
      env,
      `insert into audit.changes (at, actor, action, service, subject)
       select now() - $2 * interval '1 day', 'ann', 'provider add', 'hooks', 'generic:' || i
         from generate_series(1, $1::integer) i`,
      [count, days],
    )
  const has = async (count: number) => {
    const [row] = await postgres.query(env, 'select count(*)::int as n from audit.changes')
    return row?.['n'] === count
  }
  const start = (days: string) =>
    startServer(t, { services: ['hooks'], env: { ...env, GATEHOUSE_AUDIT_DAYS: days } })
  await fill(2, 366)
  await fill(3, 100)
  const year = await startServer(t, { services: ['hooks'], env })
  await until(() => has(3), 'what is a year old to be removed')
  await year.stop()
  t.match(year.logs().join('\n'), '"msg":"pruned","changes":2')
  const short = await start('30')
  await until(() => has(0), 'what is a month old to be removed')
  await short.stop()

  await fill(100_010, 4_000)
  await start('0')
  await until(() => has(100_000), 'the surplus to be removed')
  const [last] = await postgres.query(env, 'select subject from audit.changes order by id limit 1')
  t.match(last, { subject: 'generic:11' }, 'the oldest ones')
  t.equal((await auditOf(env, '--limit', '100000')).length, 100_000)
})
