import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { parseEnv } from 'node:util'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { runOk, FREE, refuseCommands, refusedRows, runCli } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { exitOf, ROOT, spawnProgram } from '../helpers/program.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { startServer } from '../helpers/server.ts'
import { request } from '../helpers/http.ts'
import { expectStatus } from '../helpers/refusals.ts'

const ADDRESSES =
  '--hooks-base-url https://hooks.lan.test --links-base-url https://go.lan.test --ops-base-url https://ops.lan.test'

/** A folder with nothing in it, and the variables of a start that creates its data there. */
async function emptyPlace(t: Test) {
  const folder = await temporaryFolder(t, 'init')
  const file = join(folder, 'gatehouse.env')
  return { folder, file, env: { ...FREE, GATEHOUSE_DATA_DIR: join(folder, 'data') } }
}

function modeOf(path: string) {
  return statSync(path).mode & 0o777
}

/** The settings of a file; a key that init has made is a secret of this test. */
function settingsIn(file: string) {
  const settings = parseEnv(readFileSync(file, 'utf8'))
  const { GATEHOUSE_SECRET_KEY: key } = settings
  if (key !== undefined) keepSecret('made-key', key)
  return settings
}

t.test(
  'without a terminal and without flags: the embedded database on this machine',
  async (t) => {
    const { file, env } = await emptyPlace(t)
    const { code, stdout, stderr } = await runCli(`init --file ${file}`, { env })
    t.same({ code, stdout }, { code: 0, stdout: '' }, stderr)
    t.equal(modeOf(file), 0o600)
    t.same(settingsIn(file), {}, 'the first start makes the key of secrets')
    t.match(stderr, 'ok    database: embedded', 'it ends with the check')
    t.match(stderr, `gatehouse serve --env-file ${file}`)
  },
)

t.test('flags say everything; the server starts with the file', async (t) => {
  const { file, env } = await emptyPlace(t)
  const { DATABASE_URL: url = '' } = await postgres.env(t)
  const key = secret('model # key')
  const keyFile = join(await temporaryFolder(t, 'key'), 'key')
  writeFileSync(keyFile, `${key}\n`)
  const flags = `${ADDRESSES} --proxy nginx --sign-in authelia --portal https://login.lan.test --sign-in-address 127.0.0.1:9999 --database - --ops-model-url http://127.0.0.1:9/v1 --model-key ${keyFile} --ops-tier1-model small --ops-interval 600`
  const { stdout, stderr } = await runOk(`init --file ${file} ${flags}`, { env, input: url })
  t.equal(modeOf(file), 0o600)
  const { GATEHOUSE_SECRET_KEY: made = '' } = settingsIn(file)
  t.equal(Buffer.from(made, 'base64').length, 32, 'a database on a server has a key')
  t.match(settingsIn(file), {
    HOOKS_BASE_URL: 'https://hooks.lan.test',
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
    GATEHOUSE_USER_HEADER: 'Remote-Email',
    GATEHOUSE_GROUPS_HEADER: 'Remote-Groups',
    DATABASE_URL: url,
    OPS_MODEL_URL: 'http://127.0.0.1:9/v1',
    OPS_MODEL_KEY: key,
    OPS_TIER1_MODEL: 'small',
    OPS_INTERVAL: '600',
  })
  t.match(stderr, 'from 127.0.0.1/32, and takes the user from the header ')
  for (const own of [
    'server_name hooks.lan.test;',
    '127.0.0.1:9999',
    'https://login.lan.test/?rd=',
  ]) {
    t.ok(stdout.includes(own), own)
  }
  t.notMatch(stdout, /example\.com|9091/, 'nothing of the example is left')
  t.notMatch(stdout + stderr, key)

  const started = { env: { ...env, GATEHOUSE_ENV_FILE: file }, services: ['hooks'] as const }
  const server = await startServer(t, started)
  const headers = { Host: 'hooks.lan.test', 'Remote-Email': 'ann@lan.test' }
  await expectStatus(200, request(`${server.hooks}/log`, { headers }))
})

t.test(
  'what stands in a file stays until --force, and what is not asked for after it',
  async (t) => {
    const { file, env } = await emptyPlace(t)
    const first = `HOOKS_MAX_BODY=1MiB\nGATEHOUSE_SECRET_KEY='${secret('key')}'\n`
    writeFileSync(file, first, { mode: 0o644 })
    await refuseCommands(t, { env, state: async () => readFileSync(file, 'utf8') }, [
      [`init --file ${file}`, 1, /gatehouse\.env is there already: --force changes it/],
    ])
    const flags = '--force --ops-interval 600'
    // A key of another length is one of the things that the check finds.
    const { code, stderr } = await runCli(`init --file ${file} ${flags}`, { env })
    t.equal(code, 1)
    t.match(stderr, /FAIL +configuration: GATEHOUSE_SECRET_KEY/)
    t.equal(modeOf(file), 0o600)
    t.same(settingsIn(file), { ...parseEnv(first), OPS_INTERVAL: '600' })
  },
)

t.test('the proxy leads to where the services listen', async (t) => {
  const { folder, env } = await emptyPlace(t)
  // A path may have spaces, and an empty setting counts as none.
  const file = join(folder, "it's mine")
  const listeners = 'HOOKS_ADDR=127.0.0.1:0\nLINKS_ADDR=[::1]:9\nOPS_BASE_URL=https://o.test\n'
  writeFileSync(file, `GATEHOUSE_SECRET_KEY=\n${listeners}`)
  const { GATEHOUSE_DATA_DIR = '' } = env
  const own = { GATEHOUSE_DATA_DIR, OPS_ADDR: '127.0.0.1:0', LINKS_BASE_URL: 'https://l.test' }
  const flags = ['--force', '--hooks-base-url', 'https://h.test', '--proxy', 'caddy']
  const { stdout, stderr } = await runCli(['init', '--file', file, ...flags], { env: own })
  for (const text of ['h.test {', 'l.test {', 'o.test {', 'reverse_proxy [::1]:9\n']) {
    t.ok(stdout.includes(text), text)
  }
  const [, next = ''] = /^Next: (?:npx )?(.*)$/m.exec(stderr) ?? []
  const printed = spawnSync('sh', ['-c', `gatehouse() { printf %s "$3"; }; ${next}`])
  t.equal(printed.stdout.toString(), file)
})

t.test('the file does not follow a link, and its folder keeps nothing else', async (t) => {
  const { folder, file, env } = await emptyPlace(t)
  const other = join(await temporaryFolder(t, 'other'), 'file')
  writeFileSync(other, 'as it was')
  symlinkSync(other, `${file}.new`)
  await runOk(`init --file ${file}`, { env })
  t.equal(readFileSync(other, 'utf8'), 'as it was')
  t.same(readdirSync(folder), ['gatehouse.env'])
})

t.test('what is refused, and nothing is written', async (t) => {
  const { folder, file, env } = await emptyPlace(t)
  await refuseCommands(t, { env, state: async () => readdirSync(folder) }, [
    ...refusedRows(`init --file ${file}`, 2, [
      ['--proxy caddy', '--proxy caddy needs --hooks-base-url, --links-base-url'],
      ['--proxy apache', '--proxy must be caddy, nginx, tailscale, cloudflare or none'],
      ['--hooks-base-url hooks', 'HOOKS_BASE_URL'],
      ['--install', '--install has its own file: leave out --file'],
    ]),
    ...refusedRows(`init --file ${file} ${ADDRESSES} --proxy`, 2, [
      [
        'nginx --hooks-base-url https://hooks.lan.test:8443',
        'HOOKS_BASE_URL must be an https:// URL without a port',
      ],
      ['caddy --ops-base-url http://ops.lan.test', 'OPS_BASE_URL must be an https'],
      ['tailscale', 'each service needs a port of its own'],
      ['caddy --sign-in x', '--sign-in must be authelia or oauth2-proxy'],
      ['caddy --portal auth', '--portal must be an https:// URL'],
      ['caddy --sign-in-address x', '--sign-in-address must be host:port'],
    ]),
    [`init --file ${folder}/none/file`, 1, `no file can be made in ${folder}/none (ENOENT`],
    [
      { args: `init --file ${file} --database -`, input: 'mysql://x' },
      2,
      '--database must be a postgres',
    ],
  ])
})

t.test('every call in the recipes', async (t) => {
  const page = readFileSync(join(ROOT, 'docs/recipes.md'), 'utf8')
  const blocks = [...page.matchAll(/```sh\n(gatehouse init -[^]*?)\n```/g)]
  t.equal(blocks.length, 4)
  for (const [, block = ''] of blocks) {
    const { file, env } = await emptyPlace(t)
    const words = block.split(/[\s\\]+/).slice(1)
    const { stdout } = await runOk([...words, '--file', file], { env })
    t.not(stdout, '')
    const { GATEHOUSE_USER_HEADER: header = '' } = settingsIn(file)
    const row = page.split('\n').find((line) => line.includes(`| \`${header}\` |`))
    t.match(row, '`127.0.0.1/32`', 'the header is in the table, with the one address')
  }
})

t.test(
  'with --install the unit has its settings, and secrets where root alone reads them',
  async (t) => {
    const { env } = await emptyPlace(t)
    const root = await temporaryFolder(t, 'root')
    // install.sh takes the executable that is built; here one stands for it.
    const tools = await temporaryFolder(t, 'tools')
    const executable = join(tools, 'gatehouse')
    writeFileSync(executable, '#!/bin/sh\n')
    const script = `/bin/sh "$1" ${executable} && echo 'Next: where systemd runs'`
    writeFileSync(join(tools, 'sh'), `#!/bin/sh\n${script}\n`)
    for (const name of [executable, join(tools, 'sh')]) chmodSync(name, 0o755)
    const { PATH = '' } = process.env
    const installing = { ...env, DESTDIR: root, PATH: `${tools}:${PATH}` }
    const settings = join(root, 'etc/gatehouse/gatehouse.env')
    const key = join(root, 'etc/gatehouse/credentials/gatehouse_secret_key')

    // With an executable that somebody has built it would go on.
    if (!existsSync(join(ROOT, 'dist/gatehouse'))) {
      const failed = await runCli('init --install', { env: { ...env, DESTDIR: root } })
      t.match(failed, { code: 1, stderr: /the unit was not installed: .*npm run build/ })
      t.notOk(existsSync(settings), 'without a program there are no settings')
    }

    const shell = { ...installing, DATABASE_URL: 'postgres://127.0.0.1:1/none' }
    const first = await runOk('init --install --ops-interval 600', { env: shell })
    for (const line of [
      'installed  /usr/local/lib/systemd/system/gatehouse.service',
      /Not used, because the unit does not have it: .*DATABASE_URL/,
      // The check is that of the unit.
      'ok    database: embedded',
      /^Settings: .*gatehouse\.env, and secrets in .*credentials/m,
      '&& systemctl restart gatehouse.service',
    ]) {
      t.match(first.stderr, line)
    }
    t.equal(first.stderr.match(/^Next: /gm)?.length, 1, 'one next step')
    t.equal(modeOf(settings), 0o644)
    t.same(parseEnv(readFileSync(settings, 'utf8')), { OPS_INTERVAL: '600' })
    t.notOk(existsSync(key), 'the first start makes it in the data directory')
    t.match(await runCli('init --install', { env: installing }), { code: 1 })

    const moved = secretKey()
    const state = join(root, 'var/lib/gatehouse')
    mkdirSync(state, { recursive: true })
    writeFileSync(join(state, 'secret.key'), moved)
    const { DATABASE_URL: input = '' } = await postgres.env(t)
    for (const more of [' --database -', '']) {
      await runOk(`init --install --force${more}`, { env: installing, input })
      t.equal(readFileSync(key, 'utf8'), moved, 'a lost key would make secrets unreadable')
      t.equal(modeOf(key), 0o600)
      // From now on the settings have it.
      rmSync(join(state, 'secret.key'), { force: true })
    }

    await runOk(`init --force --file ${settings} --ops-interval 900`, { env: installing })
    t.equal(modeOf(settings), 0o644, 'named or not, the unit can read it')
  },
)

t.test('the unit of the Debian package stays, and gets settings', async (t) => {
  const { env } = await emptyPlace(t)
  const root = await temporaryFolder(t, 'root')
  const unit = join(root, 'usr/lib/systemd/system/gatehouse.service')
  const settings = join(root, 'etc/gatehouse/gatehouse.env')
  for (const [file, name] of [
    [unit, 'gatehouse.service'],
    [settings, 'gatehouse.env'],
  ] as const) {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, readFileSync(join(ROOT, 'deploy', name)))
  }
  const destination = { env: { ...env, DESTDIR: root } }
  const { stderr } = await runOk('init --install --ops-interval 600', destination)
  t.match(stderr, 'unchanged  /usr/lib/systemd/system/gatehouse.service')
  t.notOk(existsSync(join(root, 'usr/local')), 'a unit there would win over that of the package')
  t.same(parseEnv(readFileSync(settings, 'utf8')), { OPS_INTERVAL: '600' })
})

t.test('at a terminal it asks', async (t) => {
  const { file, env } = await emptyPlace(t)
  const key = secret('typed-key')
  const answers: readonly (readonly [question: string, answer: string])[] = [
    ['Public address of hooks', 'hooks.lan.test'],
    ['Expected an http:// or https:// URL', 'https://hooks.lan.test'],
    ['Public address of links', 'https://go.lan.test'],
    ['Public address of ops', 'https://ops.lan.test'],
    ['Proxy: caddy', 'caddy'],
    ['Sign-in service', 'oauth2-proxy'],
    ['PostgreSQL', ''],
    ['endpoint of a model', 'http://127.0.0.1:9/v1'],
    ['Its key', key],
    ['for tier 1', 'small'],
    ['for tier 2', ''],
    ['for tier 3', ''],
  ]
  const command = `${process.execPath} server.ts init --file ${file}`
  const child = spawnProgram([], env, ['script', '-qec', command, '/dev/null'])
  let [shown, from, answered] = ['', 0, 0]
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    const [question = '', answer] = answers[answered] ?? []
    const at = shown.indexOf(question, from)
    if (answer === undefined || at < 0) return
    from = at + question.length
    answered++
    child.stdin.write(`${answer}\r`)
  })
  const { code } = await exitOf(child)
  t.equal(code, 0, shown)
  t.equal(answered, answers.length, 'everything was asked')
  t.match(shown, 'X-Auth-Request-Email>Remote-Email')
  t.notMatch(shown, key, 'the key is not shown')
  t.match(settingsIn(file), {
    LINKS_BASE_URL: 'https://go.lan.test',
    OPS_MODEL_KEY: key,
    OPS_TIER1_MODEL: 'small',
    OPS_TIER2_MODEL: undefined,
  })
  t.equal(modeOf(file), 0o600)
})
