import { chmodSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { embedded, postgres } from '../helpers/backends.ts'
import { check, FREE, openCli, refuseCommands, runCli, runOk } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { keepSecret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { until } from '../helpers/until.ts'

// Before `serve` runs here: its umask would keep the server of the tests from its files.
const shared: Env = await postgres.env(t)
const restored: Env = await postgres.emptyEnv(t)

/** Runs a command that prints a secret. */
async function add(env: Env, args: string, input = '') {
  const { stdout, stderr } = await runOk(args, { env, input, secretShown: true })
  if (stdout !== '') keepSecret('added', stdout.trim().split('\n').at(-1) ?? '')
  return stderr
}

t.test('the first start makes the key, and everything uses it', async (t) => {
  const env: Env = { ...FREE, ...(await embedded.emptyEnv(t)) }
  const { GATEHOUSE_DATA_DIR: folder = '' } = env
  const file = join(folder, 'secret.key')
  const made = `\n${file} is the new key of stored secrets: keep a copy, no backup has it\n`
  // The one that has the lock of the directory makes it, and runs all that follows.
  const starts = [1, 2].map(() => openCli(t, 'serve hooks', env))
  const makers = () => starts.filter(({ stdout }) => stdout().endsWith(made))
  await until(() => makers().length > 0, 'one to be ready', 120_000)
  t.match(makers()[0]?.stdout(), /^gatehouse \S+ ready hooks=/)
  const key = keepSecret('made-key', readFileSync(file, 'utf8').trim())
  t.equal(Buffer.from(key, 'base64').length, 32)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.same(
    readdirSync(folder).filter((name) => name.startsWith('secret')),
    ['secret.key'],
  )

  await add(env, 'provider add one --signed')
  t.equal(readFileSync(file, 'utf8').trim(), key, 'it stays')

  const backup = join(await temporaryFolder(t, 'backups'), 'one')
  t.match(await runCli(`backup ${backup}`, { env }), {
    code: 0,
    stderr: `not in it is the key of its secrets: keep a copy of ${file}\n`,
  })
  const codes = await Promise.all(starts.map(({ stop }) => stop()))
  t.same(codes.toSorted(), [0, 1], 'the other one was refused')
  const elsewhere = await temporaryFolder(t, 'elsewhere')
  const there: Env = { ...FREE, ...restored, GATEHOUSE_DATA_DIR: elsewhere }
  const copy = join(elsewhere, 'secret.key')
  const place = `put it in ${copy} or in GATEHOUSE_SECRET_KEY`
  const said = `secrets of 1 provider need the key of the backup's server: ${place}\n`
  t.match(await runCli(`restore ${backup}`, { env: there }), { code: 0, stderr: said })
  t.notOk(existsSync(copy), 'a restore makes no key')
  writeFileSync(copy, key, { mode: 0o600 })
  t.same((await check(there)).about('secret key'), [`ok ${copy}`])

  const moved: Env = { ...there, GATEHOUSE_DATA_DIR: folder }
  t.same((await check(moved)).about('secret key'), [`ok ${file}`], 'the file counts there, too')
  chmodSync(file, 0o644)
  t.match((await check(moved)).about('secret files'), [
    `warn everybody on this host may read ${file}, and it holds secrets: chmod o-rwx`,
  ])
  const state = async () => readFileSync(file, 'utf8')
  for (const [text, line] of [
    ['no key', /secret.key is not valid .* 32 bytes/],
    ['', `${file} is empty or can't`],
  ] as const) {
    writeFileSync(file, text)
    await refuseCommands(t, { env, state }, [['provider add two --signed', 1, line]])
  }
})

t.test('instances on one database are told that their keys differ', async (t) => {
  const env: Env = { ...FREE, ...shared }
  const same = 'give all instances on this database the same GATEHOUSE_SECRET_KEY'
  const differs =
    'the key that encrypts secrets is another one than at the last start on this database'
  const lacks =
    'there is no key to encrypt secrets here, but the last start on this database had one'
  const first: Env = { ...env, GATEHOUSE_SECRET_KEY: secretKey() }
  const other: Env = { ...env, GATEHOUSE_SECRET_KEY: secretKey() }
  for (const present of [env, first]) {
    t.notMatch((await runCli('serve hooks', { env: present })).stderr, '"warn"')
  }
  t.notOk(existsSync(join(env['GATEHOUSE_DATA_DIR'] ?? '', 'secret.key')), 'only the variable')
  t.match(await add(other, 'endpoint add a'), `gatehouse: ${differs}: ${same}\n`)

  await add(first, 'provider add one --signed')
  await add(first, 'destination add erp https://example.com/ --authorization -', 'Bearer token')
  await add(first, 'checks add up --service shop --type http --url http://a/ --headers -', 'X: y')
  await add(first, 'notify add phone https://example.com/of-the-phone')
  const nouns = '1 provider, 1 destination, 1 check, 1 target of notices'
  for (const [present, line] of [
    [env, lacks],
    [other, differs],
    [first, differs],
  ] as const) {
    const unread = present === first ? [] : [`warn it can't read secrets of ${nouns}: set GATE`]
    t.match((await check(present)).about('secret key'), [`warn ${line}: ${same}`, ...unread])
    const { stderr } = await runCli('serve hooks', { env: present })
    t.match(stderr, `"warn","msg":"secret key differs","problem":"${line}","help":"${same}"`)
    t.equal(stderr.includes(`"secrets not readable","of":"${nouns}"`), present !== first)
  }
  t.same((await check(first)).about('secret key'), ['ok GATEHOUSE_SECRET_KEY'])
})
