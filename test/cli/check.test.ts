import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { createServer as createHttp } from 'node:http'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { t, type Test } from 'tap'
import { LOW_FREE, MIN_FREE, freeSpaceFinding } from '../../commands/house/checks/configuration.ts'
import { eachBackend, postgres } from '../helpers/backends.ts'
import { runOk, FREE, check, runCli, runCliProcess } from '../helpers/cli.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { run, sharedPostgres } from '../helpers/postgres.ts'
import type { Env } from '../helpers/program.ts'
import { startRedis } from '../helpers/queue.ts'
import { keepSecret, secret } from '../helpers/secrets.ts'
import { secretKey } from '../helpers/senders.ts'
import { listen } from '../helpers/listen.ts'
import { startServer } from '../helpers/server.ts'

const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
const PROXY = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }
const OPEN = `select count(*)::int as n from pg_namespace where nspname in ('hooks', 'gatehouse')`
const UNSEEN =
  "a proxy that leaves no sign of itself can't be seen, and everybody who comes through it counts as a user of this machine"

/** All lines about some things, `LEVEL DETAIL` each, or a part of it. */
type Found = Readonly<Record<string, readonly (string | RegExp)[]>>

/** Runs `check`, and expects its code and all lines about these things. */
async function finds(
  t: Test,
  env: Env,
  code: 0 | 1,
  lines: Found,
  services: readonly string[] = [],
) {
  const found = await check({ ...data, ...env }, services)
  t.equal(found.code, code, JSON.stringify(lines))
  for (const [what, wanted] of Object.entries(lines)) {
    t.match(found.about(what), wanted, what)
    t.equal(found.about(what).length, wanted.length, what)
  }
}

t.test('nothing is created by looking', async (t) => {
  const directory = join(await temporaryFolder(t), 'deep', 'data')
  const env = { ...FREE, GATEHOUSE_DATA_DIR: directory }
  const fresh = await runCli('check', { env })
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
  const several = await check(env, ['--instances', '2'])
  t.equal(several.code, 1)
  t.match(several.about('database'), [
    'fail GATEHOUSE_INSTANCES is 2, and the embedded database serves one process: set',
  ])
  t.notOk(existsSync(directory), 'no folder')

  const server = await postgres.emptyEnv(t)
  await finds(t, server, 0, {
    database: [/^ok PostgreSQL server \d+\.\d.*, without TLS$/],
    migrations: [/^ok 0 applied, \d+ to be applied/],
  })
  t.same(await postgres.query(server, OPEN), [{ n: 0 }], 'no schema')
})

await eachBackend(t, 'a migrated database is fine', async (t, backend) => {
  const env = await backend.env(t)
  const isEmbedded = backend.name === 'embedded'
  await finds(t, env, 0, {
    'data directory': [`ok ${env['GATEHOUSE_DATA_DIR']}`],
    'free space': isEmbedded ? [/^ok [\d.]+ [MG]iB in /] : [],
    database: [isEmbedded ? /^ok embedded in / : 'ok Postgre'],
    clock: [/^ok 0\.\d{3} s (ahead of|behind) the database's \(give or take 0\./],
    migrations: [/^ok \d+ applied$/],
  })
})

t.test('signing secrets that the present key opens, or not', async (t) => {
  const env = { ...FREE, ...(await postgres.env(t)) }
  const first = { ...env, GATEHOUSE_SECRET_KEY: secretKey() }
  const other = { ...env, GATEHOUSE_SECRET_KEY: secretKey() }
  const signing = async (env: Env, words: string) => {
    keepSecret('signing', (await runOk(words, { env, secretShown: true })).stdout.trim())
  }
  await signing(first, 'provider add one --signed')
  await finds(t, first, 0, { 'signing secrets': ['ok 1 can be read'] })
  for (const [present, problem] of [
    [other, 'sealed with another key'],
    [env, 'GATEHOUSE_SECRET_KEY is not set'],
  ] as const) {
    await finds(t, present, 0, {
      'generic:one': [
        `warn its signing secret can't be read (${problem}); set GATEHOUSE_SECRET_KEY to the key ` +
          'that it was stored with, or make a new one: gatehouse provider rotate generic:one',
      ],
    })
  }
  await signing(other, 'provider rotate one --overlap 1h')
  await finds(t, other, 0, { 'generic:one': ['warn its previous signing secret'] })
})

t.test('a database that is away, said without its password', async (t) => {
  const password = secret('database-password')
  const port = await freePort()
  const url = `postgres://gatehouse:${password}@127.0.0.1:${port}/none`
  const env = { ...FREE, DATABASE_URL: url, GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const lines = await runCli('check', { env })
  t.match(lines, {
    code: 1,
    stderr: '',
    stdout: /\nFAIL {2}database: PostgreSQL server: .*ECONNREFUSED.+\nok {4}HOOKS_ADDR/,
  })
  t.notOk(lines.stdout.includes(password))
})

t.test('files with secrets are not for everybody', async (t) => {
  const folder = await temporaryFolder(t, 'env')
  const file = join(folder, 'gatehouse.env')
  const held = `HOOKS_CHAT_SECRET=${secret('in-a-file')}\nHOOKS_FRESHNESS_S=200\n`
  const plain = 'HOOKS_FRESHNESS_S=200\nHOOKS_CHAT_SECRET=\n'
  const read = `everybody on this host may read ${file}, and it holds secrets`
  for (const [text, mode, line] of [
    [held, 0o644, `warn ${read}: chmod o-rwx ${file}, then replace them`],
    [held, 0o640, `ok ${file}`],
    [plain, 0o644, `ok ${file}`],
    [plain, 0o646, `warn everybody on this host may change ${file}: chmod o-rwx ${file}`],
  ] as const) {
    await writeFile(file, text)
    await chmod(file, mode)
    await finds(t, { GATEHOUSE_ENV_FILE: file }, 0, { 'secret files': [line] })
  }
  const credentials = await temporaryFolder(t, 'credentials')
  const env = { CREDENTIALS_DIRECTORY: credentials }
  await writeFile(join(credentials, 'another-program'), 'x', { mode: 0o644 })
  await finds(t, env, 0, { 'secret files': [] })
  const own = join(credentials, 'ops_chat_api_key')
  await writeFile(own, secret('credential'), { mode: 0o440 })
  await finds(t, env, 0, { 'secret files': [`ok ${credentials}`] })
  await chmod(own, 0o444)
  await finds(t, env, 0, { 'secret files': [`warn everybody on this host may read ${own},`] })
})

t.test('each wrong value has its line, and the rest is looked at', async (t) => {
  const wrong = {
    HOOKS_FRESHNESS_S: '5m',
    HOOKS_ADDR: 'nonsense',
    OPS_X: '1',
    DATABASE_URL: 'mysql://h/db',
    HOOKS_QUEUE_CHANNELS: 'orders',
    GATEHOUSE_GROUPS_HEADER: 'Remote-Groups',
  }
  await finds(t, wrong, 1, {
    configuration: [
      'fail DATABASE_URL is not valid',
      'fail HOOKS_ADDR is not valid',
      'fail HOOKS_FRESHNESS_S is not valid',
      'warn unknown in the environment and ignored: OPS_X; see gatehouse help settings for the names that count',
      'warn HOOKS_QUEUE_CHANNELS has no effect without HOOKS_QUEUE_URL: set that too',
      'warn GATEHOUSE_GROUPS_HEADER has no effect without GATEHOUSE_TRUSTED_PROXIES: set that too',
    ],
    'data directory': [`ok ${data.GATEHOUSE_DATA_DIR}`],
    LINKS_ADDR: ['ok '],
    HOOKS_ADDR: [],
    database: [],
  })
  const named = await check({
    ...data,
    HOOKS_BASE_URL: 'https://:password-1@hooks.example',
    OPS_MODEL_URL: 'https://u:pa/password-2@h/v1',
    OPS_NOTIFY_URL: 'https://u:password-3@h',
    LINKS_BASE_URL: 'https://h/?key=password-4',
    HOOKS_QUEUE_URL: 'redis://:password-5@h/none',
    HOOKS_REPLAY_TARGETS: 'lan.example, u:password-6@h',
    HOOKS_ADDR: 'http://u:password-7@h',
    GATEHOUSE_TRUSTED_PROXIES: 'u:password-8@h',
    OPS_AGENT_COMMAND: 'a --key="password-9"',
  })
  const refused = named.about('configuration').filter((line) => line.startsWith('fail '))
  t.equal(refused.length, 9, 'a user or a password has no place in these')
  t.notMatch(JSON.stringify(named.findings), /password-\d/)

  const unread = await check({ GATEHOUSE_ENV_FILE: '/nowhere/none.env' })
  t.equal(unread.code, 1)
  t.equal(unread.findings.length, 1, 'without the file nothing is known')
  t.match(unread.about('configuration'), [
    "fail The environment file /nowhere/none.env can't be read",
  ])
})

t.test('the data directory: its rights, and whether it is one', async (t) => {
  const folder = join(await temporaryFolder(t), 'data')
  await mkdir(folder)
  const everybody = 'warn everybody on this host may'
  for (const [mode, line] of [
    [0o770, `ok ${folder}`],
    [0o755, `${everybody} look into ${folder}: chmod 700 ${folder}`],
    [0o777, `${everybody} write in ${folder}: chmod 700 ${folder}`],
  ] as const) {
    await chmod(folder, mode)
    await finds(t, { GATEHOUSE_DATA_DIR: folder }, 0, { 'data directory': [line] })
  }
  const file = join(folder, 'file')
  await writeFile(file, '')
  await finds(t, { GATEHOUSE_DATA_DIR: join(file, 'below') }, 1, {
    'data directory': [`fail ${file} is a file: choose another folder`],
  })
  // The user root may write everywhere.
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']
  const program = [process.getuid?.() === 0 ? nobody : ['env'], process.execPath, 'server.ts']
  const { stdout } = await runCliProcess('check', {
    env: { ...FREE, GATEHOUSE_DATA_DIR: '/usr/none' },
    program: program.flat(),
  })
  t.match(stdout, "\nFAIL  data directory: /usr can't be written by this user (EACCES")
  t.notMatch(stdout, 'free space')
})

t.test('room for the data, as far as the bounds go', async (t) => {
  const level = (free: number) => freeSpaceFinding('/data', free).level
  t.same([level(MIN_FREE - 1), level(LOW_FREE - 1), level(LOW_FREE)], ['warn', 'warn', 'ok'])
  const { detail } = freeSpaceFinding('/data', 10e6)
  t.equal(detail, 'only 9 MiB in /data: make room, 64 MiB at least')
})

t.test('addresses', async (t) => {
  const port = await freePort()
  const local = `127.0.0.1:${port}`
  await finds(t, { HOOKS_ADDR: local, OPS_ADDR: `[::1]:${port}` }, 0, {
    HOOKS_ADDR: [`ok ${local} is free`],
    OPS_ADDR: [`ok [::1]:${port} is free`],
  })
  const twins = { HOOKS_ADDR: local, OPS_ADDR: local }
  await finds(t, twins, 1, {
    OPS_ADDR: [`fail ${local} is also HOOKS_ADDR: give each service an address of its own`],
  })
  // Only what is going to run is looked at.
  await finds(t, twins, 0, { HOOKS_ADDR: [] }, ['ops', 'links'])
  await finds(t, { ...PROXY, HOOKS_ADDR: '192.0.2.7:8080', LINKS_ADDR: 'nowhere.invalid:80' }, 1, {
    HOOKS_ADDR: [
      'fail this host has no address 192.0.2.7:8080: see ip address, or listen on 127.0.0.1',
    ],
    LINKS_ADDR: ["fail nowhere.invalid:80 can't be listened on: "],
  })
  const open = { OPS_ADDR: '0.0.0.0:0' }
  await finds(t, open, 1, {
    OPS_ADDR: [
      'fail 0.0.0.0:0 is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES to the proxy that authenticates, or listen on 127.0.0.1',
    ],
  })
  await finds(t, { ...open, GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/8' }, 0, {
    GATEHOUSE_TRUSTED_PROXIES: ['ok 10.0.0.0/8; of others, '],
  })
  // What is meant by the list is not known.
  const unclear = { ...open, GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/99' }
  await finds(t, unclear, 1, { OPS_ADDR: ['ok '] })
  await finds(t, { LINKS_BASE_URL: 'https://go.example' }, 0, {
    GATEHOUSE_TRUSTED_PROXIES: ['warn none, but LINKS_BASE_URL is a public'],
  })
  await finds(t, { LINKS_BASE_URL: 'http://localhost:8081' }, 0, {
    GATEHOUSE_TRUSTED_PROXIES: ['ok none; a proxy that leaves no sign '],
  })
})

t.test('an address that somebody holds: a Gatehouse, or another program', async (t) => {
  const socket = `unix:${join(await temporaryFolder(t, 'run'), 'links.sock')}`
  const env = { ...(await postgres.env(t)), LINKS_ADDR: socket }
  const server = await startServer(t, { services: ['hooks', 'links'], env })
  const { host } = new URL(server.hooks)
  const { stdout: version } = await runCli('version')
  const holder = `is held by a running gatehouse ${version.trim()}`
  await finds(t, { HOOKS_ADDR: host, LINKS_ADDR: socket }, 0, {
    HOOKS_ADDR: [`ok ${host} ${holder}`],
    LINKS_ADDR: [`ok ${socket} ${holder}`],
  })
  const http = createHttp((_request, response) => response.end('{"version": "9"}'))
  const mute = `127.0.0.1:${await listen(t, createServer())}`
  const web = `0.0.0.0:${await listen(t, http)}`
  const taken =
    "is held by another program (ss -ltnp): stop that or choose another; when it is systemd's socket unit, set fd:NAME"
  await finds(t, { ...PROXY, HOOKS_ADDR: mute, LINKS_ADDR: web }, 1, {
    HOOKS_ADDR: [`fail ${mute} ${taken}`],
    LINKS_ADDR: [`fail ${web} ${taken}`],
  })
})

t.test('a client that comes while addresses are looked at', async (t) => {
  const port = await freePort()
  // It says nothing when it is asked who it is: meanwhile the first address is held.
  const mute = await listen(t, createServer())
  let [looking, came] = [true, 0]
  const knock = () => {
    // It never ends the connection by itself.
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    client.once('connect', () => (came += 1))
    client.on('error', () => undefined)
    client.once('close', () => looking && setTimeout(knock, 1))
    t.teardown(() => client.destroy())
  }
  knock()
  const addresses = { HOOKS_ADDR: `127.0.0.1:${port}`, LINKS_ADDR: `127.0.0.1:${mute}` }
  await finds(t, addresses, 1, { HOOKS_ADDR: [`ok 127.0.0.1:${port} is free`] })
  looking = false
  t.ok(came > 0)
})

t.test('a unix socket: its folder, what is there, and how long its path is', async (t) => {
  const folder = await temporaryFolder(t, 'sockets')
  const path = join(folder, 'a.sock')
  const line = (code: 0 | 1, at: string, text: string) =>
    finds(t, { HOOKS_ADDR: `unix:${at}` }, code, { HOOKS_ADDR: [text] }, ['hooks'])
  await line(0, path, `ok unix:${path} is free`)
  await line(
    1,
    join(folder, 'none', 'a.sock'),
    `fail unix:${folder}/none/a.sock can't be made (ENOENT`,
  )
  const long = join(folder, 'x'.repeat(108))
  await line(1, long, `fail unix:${long} is longer than 107 bytes: choose a shorter path`)
  const file = join(folder, 'file')
  await writeFile(file, '')
  await line(1, file, `fail ${file} is no socket: remove it, or choose another path`)
  const holder = createServer()
  await listen(t, holder, { path })
  await line(1, path, `fail unix:${path} is held by another program`)
  holder.close()
  // Node removes a socket that it closes by the name that it has made: a crash leaves it.
  const crashed = createServer()
  await listen(t, crashed, { path: `${path}.new` })
  await rename(`${path}.new`, path)
  crashed.close()
  await line(0, path, `ok unix:${path} is free (a server left it)`)
})

t.test('sockets of systemd, which it passes to the service only', async (t) => {
  const hooks = { HOOKS_ADDR: 'fd:hooks' }
  const before = 'ok fd:hooks, which systemd passes to the service only: seen when it starts'
  await finds(t, hooks, 0, { HOOKS_ADDR: [before] }, ['hooks'])
  const passed = { LISTEN_PID: String(process.pid), LISTEN_FDS: '2', LISTEN_FDNAMES: 'hooks:web' }
  await finds(t, { ...passed, ...hooks, LINKS_ADDR: 'fd:links' }, 1, {
    HOOKS_ADDR: ['ok fd:hooks was passed'],
    LINKS_ADDR: [
      'fail no socket named "links" was passed, but hooks, web: set FileDescriptorName=links in the socket unit',
    ],
  })
})

/** What the server says is what a function of this name in `public` says: it is looked up first. */
async function overruled(t: Test, functions: string) {
  const env = await postgres.emptyEnv(t)
  await postgres.query(env, functions)
  await setDefault(env, 'search_path to public, pg_catalog')
  return env
}

/** Sets what holds for each new connection to a database. */
function setDefault(env: Env, setting: string) {
  const { pathname } = new URL(env['DATABASE_URL'] ?? '')
  return postgres.query(env, `alter database ${pathname.slice(1)} set ${setting}`)
}

t.test('a clock that is more than five seconds off, the round trip taken off', async (t) => {
  for (const [seconds, delay, line] of [
    [-8, 0, /^warn [78]\.\d{3} s ahead of .*, 5 s at most: synchronize both hosts \(timedatectl/],
    // Asked at 0, answered after 1.2 s, at the end of it: looks like 5.4 s off, give or take 0.6 s.
    [4.8, 1.2, /^ok [56]\.\d{3} s behind the database's/],
  ] as const) {
    const env = await overruled(
      t,
      `create function public.clock_timestamp() returns timestamptz language plpgsql as $$ begin
        perform pg_sleep(${delay});
        return pg_catalog.clock_timestamp() + interval '${seconds} seconds';
      end $$`,
    )
    await finds(t, env, 0, { clock: [line] })
  }
})

t.test('a database that can not be used: check says so, and no command begins', async (t) => {
  const databases = await sharedPostgres()
  const admin = (text: string) => run(databases.url(), text)
  const unusable = async (env: Env, problem: string, commands: readonly string[]) => {
    const looked = await check(env)
    t.equal(looked.code, 1)
    t.match(looked.about('database'), ['fail PostgreSQL server '])
    t.ok(looked.about('database')[0]?.endsWith(`: ${problem}`))
    t.same(looked.about('migrations'), [], 'nothing else is asked of it')
    for (const command of commands) {
      const { code, stderr } = await runCli(command, { env: { ...FREE, ...env } })
      t.equal(code, 1, command)
      t.equal(stderr.trim().split('\n').at(-1), `gatehouse: ${problem}`)
    }
  }
  const old = await overruled(
    t,
    `create function public.current_setting(name text) returns text language sql as $$
      select case name when 'server_version_num' then '140012' when 'server_version' then '14.12'
        else pg_catalog.current_setting(name) end $$`,
  )
  const older = 'the server is PostgreSQL 14.12; 15 or newer is needed: upgrade it'
  await unusable(old, older, ['serve hooks', 'migrate', 'user list'])
  t.same(await postgres.query(old, OPEN), [{ n: 0 }], 'nothing is put there')

  const latin = new URL(databases.url())
  const name = `latin_${randomUUID().replaceAll('-', '')}`
  latin.pathname = `/${name}`
  t.teardown(() => databases.dropDatabase(latin.href))
  await admin(`create database ${name} template template0 encoding 'LATIN1' locale 'C'`)
  const encoding = 'the database has the encoding LATIN1; make one with UTF8'
  await unusable({ ...data, DATABASE_URL: latin.href }, encoding, ['migrate'])

  const guest = new URL(await databases.createDatabase())
  const role = `guest_${randomUUID().replaceAll('-', '')}`
  await admin(`create role ${role} login password 'guest'`)
  t.teardown(async () => {
    await databases.dropDatabase(guest.href)
    await admin(`drop role ${role}`)
  })
  guest.username = role
  guest.password = 'guest'
  const env = { ...data, DATABASE_URL: guest.href }
  const right = 'the role may not create the extension pg_trgm: grant it CREATE on the database'
  await unusable(env, right, ['serve links', 'migrate'])
  // The remedy that the line names.
  await admin(`grant create on database ${guest.pathname.slice(1)} to ${role}`)
  await runOk('migrate', { env })
  await admin(`revoke create on database ${guest.pathname.slice(1)} from ${role}`)
  await finds(t, env, 0, { database: ['ok '] })

  const standby = await postgres.env(t)
  await setDefault(standby, 'default_transaction_read_only to on')
  await finds(t, standby, 1, {
    database: [/^fail .* takes no writes: give the primary in DATABASE_URL/],
  })
})

t.test('the broker of the queue, which no start waits for', async (t) => {
  const redis = await startRedis(t)
  const { host } = new URL(redis.url)
  const queue = (url: string, lines: Found, ...services: readonly string[]) =>
    finds(t, { HOOKS_QUEUE_CHANNELS: 'orders', HOOKS_QUEUE_URL: url }, 0, lines, services)
  await queue(redis.url, { queue: [`ok redis://${host} answers`] })
  await queue(redis.url, { queue: [] }, 'links')
  await queue(`redis://:wrong@${host}`, {
    queue: [`warn redis://${host} does not answer (WRONGPASS`],
  })
  redis.freeze()
  const silent = 'does not answer (Redis has not answered within 2000 ms)'
  await queue(redis.url, { queue: [`warn redis://${host} ${silent}`] })
  redis.thaw()
  await queue(`redis://127.0.0.1:${await freePort()}`, {
    queue: [/ECONNREFUSED.*: start it, or correct HOOKS_QUEUE_URL$/],
  })
})

t.test('what the operations agent needs: its files', async (t) => {
  const folder = await temporaryFolder(t, 'ops')
  const [inventory, prices] = [join(folder, 'inventory.json'), join(folder, 'prices.json')]
  const env = { OPS_INVENTORY: inventory, OPS_PRICES: prices }
  await finds(t, env, 1, {
    inventory: [/^fail Inventory .* ENOENT.*; ops does not start without it$/],
  })
  await writeFile(inventory, '{"services": [{"name": "web", "checks": [{"type": "none"}]}]}')
  await writeFile(prices, '{"m": {"input": -1, "output": 1}}')
  await finds(t, env, 1, {
    inventory: [`fail Inventory ${inventory} is wrong`],
    prices: [`fail Price table ${prices} is wrong: m.input`],
  })
  // Of no matter to the others.
  await finds(t, env, 0, { inventory: [] }, ['hooks', 'links'])
  await writeFile(inventory, '{"services": []}')
  await writeFile(prices, '{"m": {"input": 1, "output": 1}}')
  await finds(t, env, 0, {
    inventory: [`ok ${inventory}`],
    prices: [`ok ${prices}`],
    sandbox: [],
  })
  await writeFile(inventory, '{"services": [], "readonly": [["find"]]}')
  const bwrap = join(folder, 'bwrap')
  const withBwrap = { ...env, PATH: `${folder}:/usr/bin:/bin` }
  await writeFile(bwrap, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  await finds(t, withBwrap, 0, { sandbox: ['ok bwrap works'] })
  await writeFile(bwrap, '#!/bin/sh\necho no namespaces\nexit 1\n')
  const problem = 'no namespaces; make bwrap (package bubblewrap) work'
  await finds(t, withBwrap, 0, {
    sandbox: [`warn commands of the inventory are off: ${problem}, or set OPS_UNSANDBOXED`],
  })
  await finds(t, { ...withBwrap, OPS_UNSANDBOXED: 'true' }, 0, {
    sandbox: [`warn commands of the inventory run without: ${problem}`],
  })
})

t.test('what the operations agent needs: its runbooks', async (t) => {
  const folder = await temporaryFolder(t, 'runbooks')
  const inventory = join(folder, 'inventory.json')
  const checks = [{ type: 'memory', runbook: 'memory' }]
  const services = [{ name: 'web', runbook: 'disk', checks }]
  await writeFile(inventory, JSON.stringify({ services }))
  const env = { OPS_INVENTORY: inventory, OPS_RUNBOOKS: folder }
  for (const name of ['disk', 'memory']) {
    await writeFile(join(folder, `${name}.md`), `---\nname: ${name}\ndescription: x\n---\n`)
  }
  await finds(t, env, 0, { runbooks: [`ok ${folder}: 2`] })
  const file = join(folder, 'memory.md')
  await writeFile(file, 'x')
  const missing = (name: string) => `warn service "web" names "${name}", which is not there`
  await finds(t, env, 0, {
    runbooks: [
      `warn ${file} is left out: it has no front matter between two lines of ---; correct or move it`,
      `${missing('memory')}: write it, or correct the inventory`,
    ],
  })
  await finds(t, { OPS_INVENTORY: inventory }, 0, {
    runbooks: [`${missing('disk')}: set OPS_RUNBOOKS`, `${missing('memory')}: set OPS_RUNBOOKS`],
  })
  const away = await check({ ...data, ...env, OPS_RUNBOOKS: join(folder, 'nothing') })
  t.match(away.about('runbooks'), [`warn ${folder}/nothing is left out: it can't be read: ENOENT`])
})

t.test('what the operations agent needs: its runner', async (t) => {
  const folder = await temporaryFolder(t, 'programs')
  await finds(t, {}, 0, { runner: [] })
  await finds(t, { OPS_RUNNER: 'model' }, 0, {
    runner: ['warn model, and no session can run: set OPS_MODEL_URL'],
  })
  const PATH = `/nowhere:${folder}`
  const cli = { PATH, OPS_RUNNER: 'cli', OPS_AGENT_COMMAND: 'codex --fast' }
  const missing =
    'warn cli, and no session can run: there is no program "codex" in PATH; install it, or set OPS_AGENT_COMMAND'
  await finds(t, cli, 0, { runner: [missing] })
  const program = join(folder, 'codex')
  await writeFile(program, '#!/bin/sh\n')
  // A file that is no program.
  await finds(t, cli, 0, { runner: [missing] })
  await chmod(program, 0o755)
  await finds(t, cli, 0, { runner: [`ok cli, ${program}`] })
})
