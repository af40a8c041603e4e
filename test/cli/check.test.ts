import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { t, type Test } from 'tap'
import { MIN_FREE, LOW_FREE, freeSpaceFinding } from '../../commands/checks/configuration.ts'
import { backends, eachBackend, onPostgres } from '../helpers/backends.ts'
import { FREE, check, refuseCommands, runCli } from '../helpers/cli.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'

const [, postgres] = backends
const OPEN = `select count(*)::int as n from pg_namespace where nspname in ('hooks', 'gatehouse')`
const ANOTHER = 'sealed with another key'
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, and everybody who comes through it counts as a user of this machine"
const NO_KEY = 'GATEHOUSE_SECRET_KEY is not set'

function unreadable(name: string, problem: string): string {
  return (
    `warn  generic:${name}: its signing secret can't be read (${problem}); set GATEHOUSE_SECRET_KEY to ` +
    `the key that it was stored with, or make a new one: gatehouse provider rotate generic:${name}`
  )
}

t.test('nothing is created by looking', async (t) => {
  const directory = join(await temporaryFolder(t), 'deep', 'data')
  const env = { ...FREE, GATEHOUSE_DATA_DIR: directory }
  const fresh = await runCli(['check'], { env })
  t.match(fresh, { code: 0, stderr: '' })
  t.same(fresh.stdout.replace(/(?<=free space: ).* in/, 'ENOUGH in').split('\n'), [
    `ok    GATEHOUSE_TRUSTED_PROXIES: none; ${UNSEEN}: set this before you put a proxy in front`,
    'ok    configuration: variables set: 4',
    `ok    data directory: ${directory}, not created yet`,
    `ok    free space: ENOUGH in ${dirname(dirname(directory))}`,
    `ok    database: embedded, not created yet in ${directory}`,
    'ok    HOOKS_ADDR: 127.0.0.1:0, any free port',
    'ok    LINKS_ADDR: 127.0.0.1:0, any free port',
    'ok    OPS_ADDR: 127.0.0.1:0, any free port',
    '',
  ])
  const several = await runCli(['check', '--instances', '2'], { env })
  t.match(several, { code: 1 })
  t.match(
    several.stdout,
    /^FAIL {2}database: GATEHOUSE_INSTANCES is 2, and the embedded database serves one process: set/m,
  )
  t.notOk(existsSync(directory), 'no folder')

  const server = { ...FREE, ...(await postgres.emptyEnv(t)) }
  const { code, stdout } = await runCli(['check'], { env: server })
  t.equal(code, 0)
  t.match(stdout, /^ok {4}database: PostgreSQL server \d+\.\d.*, without TLS$/m)
  t.match(stdout, /^ok {4}migrations: 0 applied, \d+ to be applied/m)
  t.same(await postgres.query(server, OPEN), [{ n: 0 }], 'no schema')
})

await eachBackend(t, 'a migrated database is fine', async (t: Test, backend) => {
  const env = await backend.env(t)
  const { code, findings } = await check(env)
  t.equal(code, 0)
  t.match(findings, [
    { ok: true, level: 'ok', what: 'GATEHOUSE_TRUSTED_PROXIES' },
    { ok: true, level: 'ok', what: 'configuration', detail: /^variables set: \d$/ },
    { what: 'data directory', detail: env['GATEHOUSE_DATA_DIR'] },
    ...(backend.name === 'embedded' ? [{ what: 'free space', detail: /^[\d.]+ [MG]iB in / }] : []),
    { what: 'database', detail: backend.name === 'embedded' ? /^embedded in / : /Postgre/ },
    { what: 'clock', detail: /^0\.\d{3} s (ahead of|behind) the database's \(give or take 0\./ },
    { what: 'migrations', detail: /^\d+ applied$/ },
    ...['HOOKS_ADDR', 'LINKS_ADDR', 'OPS_ADDR'].map((what) => ({ what })),
  ])
  t.equal(findings.length, backend.name === 'embedded' ? 10 : 9)
  t.ok(findings.every(({ ok, level }) => ok === (level === 'ok')))
})

await onPostgres(
  t,
  'signing secrets that the present key opens, or not',
  async (t: Test, backend) => {
    const env = { ...FREE, ...(await backend.env(t)) }
    const key = { GATEHOUSE_SECRET_KEY: secretKey() }
    for (const name of ['one', 'two']) {
      const args = ['provider', 'add', name, '--signed']
      const made = await runCli(args, { env: { ...env, ...key }, secretShown: true })
      t.equal(made.code, 0, made.stderr)
      keepSecret('signing', made.stdout.trim())
    }
    const fine = await runCli(['check'], { env: { ...env, ...key } })
    t.match(fine, { code: 0, stdout: /^ok {4}signing secrets: 2 can be read$/m })

    const other = { ...env, GATEHOUSE_SECRET_KEY: secretKey() }
    const wrong = await runCli(['check'], { env: other })
    t.match(wrong, { code: 0, stderr: '' })
    t.same(wrong.stdout.match(/^warn.*generic:.*$/gm), [
      unreadable('one', ANOTHER),
      unreadable('two', ANOTHER),
    ])
    const missing = await runCli(['check'], { env })
    t.match(missing, { code: 0, stderr: '' })
    t.same(missing.stdout.match(/^warn.*generic:.*$/gm), [
      unreadable('one', NO_KEY),
      unreadable('two', NO_KEY),
    ])

    const args = ['provider', 'rotate', 'one', '--overlap', '1h']
    const rotated = await runCli(args, { env: other, secretShown: true })
    t.equal(rotated.code, 0, rotated.stderr)
    keepSecret('signing', rotated.stdout.trim())
    const half = await runCli(['check'], { env: other })
    t.equal(half.code, 0)
    const lines = half.stdout.match(/^warn.*generic:.*$/gm) ?? []
    t.match(lines, [
      /^warn {2}generic:one: its previous signing secret/,
      /^warn {2}generic:two: its sig/,
    ])
  },
)

t.test('what is wrong is said, with code 1 and without the password', async (t) => {
  const password = secret('database-password')
  const port = await freePort()
  const url = `postgres://gatehouse:${password}@127.0.0.1:${port}/none`
  const env = { ...FREE, DATABASE_URL: url, GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const lines = await runCli(['check'], { env })
  t.match(lines, {
    code: 1,
    stderr: '',
    stdout: /\nFAIL {2}database: PostgreSQL server: .*ECONNREFUSED.+\nok {4}HOOKS_ADDR/,
  })
  t.notOk(lines.stdout.includes(password))
  const refused = new RegExp(`^gatehouse: (?!.*secret-).*ECONNREFUSED.*:${port}`)
  await refuseCommands(t, { env, state: async () => existsSync(env.GATEHOUSE_DATA_DIR) }, [
    [['migrate'], 1, refused],
    [['provider', 'list'], 1, refused],
    [['serve', 'hooks'], 1, refused],
  ])
})

t.test('an environment file with secrets is not for everybody', async (t) => {
  const folder = await temporaryFolder(t, 'env')
  const file = join(folder, 'gatehouse.env')
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const key = secret('in-a-file')
  await writeFile(file, `HOOKS_CHAT_SECRET=${key}\nHOOKS_FRESHNESS_S=200\n`)

  await chmod(file, 0o644)
  const open = await check({ ...data, GATEHOUSE_ENV_FILE: file })
  t.equal(open.code, 0)
  t.same(open.about('secret files'), [
    `warn everybody on this host may read ${file}, and it holds secrets: chmod o-rwx ${file}, then replace them`,
  ])
  t.notMatch(JSON.stringify(open.findings), key)
  await chmod(file, 0o640)
  const grouped = await check(data, ['--env-file', file])
  t.equal(grouped.code, 0)
  t.same(grouped.about('secret files'), [`ok ${file}`])

  await writeFile(file, 'HOOKS_FRESHNESS_S=200\nHOOKS_CHAT_SECRET=\n')
  await chmod(file, 0o644)
  const plain = await check({ ...data, GATEHOUSE_ENV_FILE: file })
  t.same(plain.about('secret files'), [`ok ${file}`], 'nothing secret is in it')
  await chmod(file, 0o646)
  const written = await check({ ...data, GATEHOUSE_ENV_FILE: file })
  t.equal(written.code, 0)
  t.same(written.about('secret files'), [
    `warn everybody on this host may change ${file}: chmod o-rwx ${file}`,
  ])
})

t.test('neither are credentials', async (t) => {
  const folder = await temporaryFolder(t, 'credentials')
  const env = { GATEHOUSE_DATA_DIR: await temporaryFolder(t), CREDENTIALS_DIRECTORY: folder }
  await writeFile(join(folder, 'another-program'), 'x', { mode: 0o644 })
  t.same((await check(env)).about('secret files'), [])
  await writeFile(join(folder, 'hooks_chat_secret'), secret('credential'), { mode: 0o400 })
  await writeFile(join(folder, 'ops_chat_api_key'), secret('credential'), { mode: 0o440 })
  const good = await check(env)
  t.equal(good.code, 0)
  t.same(good.about('secret files'), [`ok ${folder}`])
  const bad = join(folder, 'ops_chat_api_key')
  await chmod(bad, 0o444)
  const open = await check(env)
  t.equal(open.code, 0)
  t.match(open.about('secret files'), [
    new RegExp(`^warn everybody on this host may read ${bad},`),
  ])
})

t.test('each wrong value has its line, and the rest is looked at', async (t) => {
  const data = await temporaryFolder(t)
  const { code, about } = await check({
    ...{ GATEHOUSE_DATA_DIR: data, HOOKS_FRESHNESS_S: '5m', HOOKS_ADDR: 'nonsense', OPS_X: '1' },
    ...{ DATABASE_URL: 'mysql://h/db', HOOKS_QUEUE_CHANNELS: 'orders' },
    GATEHOUSE_GROUPS_HEADER: 'Remote-Groups',
  })
  t.equal(code, 1)
  t.match(about('configuration'), [
    /^fail DATABASE_URL is not valid .*expected a postgres:/,
    /^fail HOOKS_ADDR is not valid/,
    /^fail HOOKS_FRESHNESS_S is not valid/,
    'warn unknown in the environment and ignored: OPS_X; see gatehouse help for the names that count',
    'warn HOOKS_QUEUE_CHANNELS has no effect without HOOKS_QUEUE_URL: set that too',
    'warn GATEHOUSE_GROUPS_HEADER has no effect without GATEHOUSE_TRUSTED_PROXIES: set that too',
  ])
  t.same(about('data directory'), [`ok ${data}`])
  t.match(about('LINKS_ADDR'), ['ok '])
  t.same([about('HOOKS_ADDR'), about('database')], [[], []], 'what depends on them is not')

  const named = await check({
    ...{ GATEHOUSE_DATA_DIR: data, HOOKS_BASE_URL: 'https://:password-1@hooks.example' },
    ...{ OPS_MODEL_URL: 'https://u:pa/password-2@h/v1', OPS_NOTIFY_URL: 'https://u:password-3@h' },
    ...{
      LINKS_BASE_URL: 'https://h/?key=password-4',
      HOOKS_QUEUE_URL: 'redis://:password-5@h/none',
    },
    ...{
      HOOKS_REPLAY_TARGETS: 'lan.example, u:password-6@h',
      HOOKS_ADDR: 'http://u:password-7@h',
    },
    ...{ GATEHOUSE_TRUSTED_PROXIES: 'u:password-8@h', OPS_AGENT_COMMAND: 'a --key="password-9"' },
  })
  const refused = named.about('configuration').filter((line) => line.startsWith('fail '))
  t.equal(refused.length, 9, 'a user or a password has no place in these')
  t.notMatch(JSON.stringify(named.findings), /password-\d/)

  const none = join(data, 'none.env')
  const unread = await check({ GATEHOUSE_ENV_FILE: none })
  t.equal(unread.code, 1)
  t.equal(unread.findings.length, 1, 'without the file nothing is known')
  t.match(unread.about('configuration'), [/^fail The environment file .*none\.env can't be read/])
})

t.test('the data directory: its rights, and whether it is one', async (t) => {
  const folder = join(await temporaryFolder(t), 'data')
  await mkdir(folder, { mode: 0o700 })
  const lineFor = async (mode: number): Promise<readonly string[]> => {
    await chmod(folder, mode)
    return (await check({ GATEHOUSE_DATA_DIR: folder })).about('data directory')
  }
  t.same(await lineFor(0o700), [`ok ${folder}`])
  t.same(await lineFor(0o770), [`ok ${folder}`])
  const [looked] = await lineFor(0o755)
  t.equal(looked, `warn everybody on this host may look into ${folder}: chmod 700 ${folder}`)
  const [changed] = await lineFor(0o777)
  t.equal(changed, `warn everybody on this host may write in ${folder}: chmod 700 ${folder}`)

  const file = join(folder, 'file')
  await writeFile(file, '')
  for (const place of [file, join(file, 'below')]) {
    const { code, about } = await check({ GATEHOUSE_DATA_DIR: place })
    t.equal(code, 1)
    t.match(about('data directory'), [`fail ${file} is a file: choose another folder`])
  }
})

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
const asUser = process.getuid?.() === 0 ? NOBODY : ['env']
const [runAs = '', ...how] = asUser
const reads = spawnSync(runAs, [...how, 'cat', join(ROOT, 'package.json')]).status === 0

t.test(
  'the data directory: a place that this user can not write',
  { skip: reads ? false : 'the repository is not readable for others' },
  async (t) => {
    const program = [...asUser, process.execPath, 'server.ts']
    const { code, about } = await check({ GATEHOUSE_DATA_DIR: '/usr/none' }, [], { program })
    t.equal(code, 1)
    t.match(about('data directory'), ["fail /usr can't be written by this user (EACCES"])
    t.same(about('free space'), [])
    const server = { ...(await postgres.env(t)), GATEHOUSE_DATA_DIR: '/usr/none' }
    const elsewhere = await check(server, [], { program })
    t.equal(elsewhere.code, 0, 'the database is elsewhere')
    t.match(elsewhere.about('data directory'), ["warn /usr can't be written by this user"])
  },
)

t.test('room for the data, as far as the bounds go', async (t) => {
  const level = (free: number): string => freeSpaceFinding('/data', free).level
  t.same([level(MIN_FREE - 1), level(MIN_FREE)], ['warn', 'warn'])
  t.same([level(LOW_FREE - 1), level(LOW_FREE)], ['warn', 'ok'])
  t.equal(
    freeSpaceFinding('/data', 10e6).detail,
    'only 9 MiB in /data: make room, 64 MiB at least',
  )
  t.equal(freeSpaceFinding('/data', 5 * LOW_FREE).detail, '5.0 GiB in /data')
})
