import { spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import { LEAST_FREE, LITTLE_FREE, roomFinding } from '../../commands/checks/data-directory.ts'
import { check } from '../helpers/check.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'

t.test('an environment file with secrets is not for everybody', async (t) => {
  const folder = await temporaryFolder(t, 'env')
  const file = join(folder, 'gatehouse.env')
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const key = secret('in-a-file')
  await writeFile(file, `HOOKS_CHAT_SECRET=${key}\nHOOKS_FRESHNESS_S=200\n`)

  await chmod(file, 0o644)
  const open = await check({ ...data, GATEHOUSE_ENV_FILE: file })
  t.equal(open.code, 1)
  t.same(open.about('secret files'), [
    `fail everybody on this host may read ${file}, and it holds secrets: chmod o-rwx ${file}, then replace them`,
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
  t.equal(written.code, 1)
  t.same(written.about('secret files'), [
    `fail everybody on this host may change ${file}: chmod o-rwx ${file}`,
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
  t.equal(open.code, 1)
  t.match(open.about('secret files'), [new RegExp(`^fail everybody on this host may read ${bad},`)])
})

t.test('each wrong value has its line, and the rest is looked at', async (t) => {
  const data = await temporaryFolder(t)
  const { code, about } = await check({
    ...{ GATEHOUSE_DATA_DIR: data, HOOKS_FRESHNESS_S: '5m', HOOKS_ADDR: 'nonsense', OPS_X: '1' },
    ...{ DATABASE_URL: 'mysql://h/db', HOOKS_QUEUE_CHANNELS: 'orders' },
  })
  t.equal(code, 1)
  t.match(about('configuration'), [
    /^fail DATABASE_URL is not valid .*expected a postgres:/,
    /^fail HOOKS_ADDR is not valid/,
    /^fail HOOKS_FRESHNESS_S is not valid/,
    'warn unknown in the environment and ignored: OPS_X; see gatehouse help for the names that count',
    'warn HOOKS_QUEUE_CHANNELS has no effect without HOOKS_QUEUE_URL: set that too',
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
    ...{ HOOKS_REPLAY_TARGETS: 'lan.example, u:password-6@h', HOOKS_ADDR: 'http://u:password-7@h' },
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
  t.equal(changed, `fail everybody on this host may write in ${folder}: chmod 700 ${folder}`)

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
  },
)

t.test('room for the data, as far as the bounds go', async (t) => {
  const level = (free: number): string => roomFinding('/data', free).level
  t.same([level(LEAST_FREE - 1), level(LEAST_FREE)], ['fail', 'warn'])
  t.same([level(LITTLE_FREE - 1), level(LITTLE_FREE)], ['warn', 'ok'])
  t.equal(roomFinding('/data', 10e6).detail, 'only 9 MiB in /data: make room, 64 MiB at least')
  t.equal(roomFinding('/data', 5 * LITTLE_FREE).detail, '5.0 GiB in /data')
})
