import { randomUUID } from 'node:crypto'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { check, runCli } from '../helpers/cli.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { run, sharedPostgres } from '../helpers/postgres.ts'
import type { Env } from '../helpers/program.ts'
import { startRedis } from '../helpers/queue.ts'

const [, postgres] = backends

/** What the server says is what a function of this name in `public` says: it is looked up first. */
async function overruled(t: Test, functions: string): Promise<Env> {
  const env = await postgres.emptyEnv(t)
  const { pathname } = new URL(env['DATABASE_URL'] ?? '')
  await postgres.query(env, functions)
  const path = `alter database ${pathname.slice(1)} set search_path to public, pg_catalog`
  await postgres.query(env, path)
  return env
}

/** The database's clock, wrong by that much and slow to answer. */
function clock(seconds: number, delay = 0): string {
  return `create function public.clock_timestamp() returns timestamptz language plpgsql as $$ begin
    perform pg_sleep(${delay});
    return pg_catalog.clock_timestamp() + interval '${seconds} seconds';
  end $$`
}

t.test('a clock that is more than five seconds off, the round trip taken off', async (t) => {
  for (const [seconds, delay, line] of [
    [4, 0, /^ok [34]\.\d{3} s behind the database's \(give or take 0\.\d{3} s\)$/],
    [-8, 0, /^warn [78]\.\d{3} s ahead of .*, 5 s at most: synchronize both hosts \(timedatectl/],
    [8, 0, /^warn [78]\.\d{3} s behind the database's/],
    // Asked at 0, answered after 1.2 s, at the end of it: looks like 5.4 s off, give or take 0.6 s.
    [4.8, 1.2, /^ok [56]\.\d{3} s behind the database's/],
  ] as const) {
    const { about } = await check(await overruled(t, clock(seconds, delay)))
    t.match(about('clock'), [line], `${seconds} s, ${delay} s later`)
  }
})

t.test('a server that is too old, or takes no writes', async (t) => {
  const old = await overruled(
    t,
    `create function public.current_setting(name text) returns text language sql as $$
      select case name when 'server_version_num' then '140012' when 'server_version' then '14.12'
        else pg_catalog.current_setting(name) end $$`,
  )
  const too = await check(old)
  t.equal(too.code, 1)
  t.same(too.about('database'), [
    'fail PostgreSQL server 14.12: the server is PostgreSQL 14.12; 15 or newer is needed: upgrade it',
  ])
  t.same(too.about('migrations'), [], 'nothing else is asked of it')
  for (const args of [['serve', 'hooks'], ['migrate'], ['user', 'list']]) {
    const { code, stderr } = await runCli(args, { env: { ...old, HOOKS_ADDR: '127.0.0.1:0' } })
    t.equal(code, 1, args.join(' '))
    t.match(stderr, 'gatehouse: the server is PostgreSQL 14.12; 15 or newer is needed: upgrade it')
  }
  const nothing = "select 1 from pg_namespace where nspname = 'gatehouse'"
  t.same(await postgres.query(old, nothing), [], 'and nothing is put there')

  const env = await postgres.env(t)
  const { pathname } = new URL(env['DATABASE_URL'] ?? '')
  const standby = `alter database ${pathname.slice(1)} set default_transaction_read_only to on`
  await postgres.query(env, standby)
  const reading = await check(env)
  t.equal(reading.code, 1)
  t.match(reading.about('database'), [
    /^fail .* takes no writes: give the primary in DATABASE_URL$/,
  ])
})

t.test('a database that is not in UTF8', async (t) => {
  const databases = await sharedPostgres()
  const latin = new URL(databases.url())
  latin.pathname = `/latin_${randomUUID().replaceAll('-', '')}`
  t.teardown(() => databases.dropDatabase(latin.href))
  const name = latin.pathname.slice(1)
  const create = `create database ${name} template template0 encoding 'LATIN1' locale 'C'`
  await run(databases.url(), create)
  const env = { DATABASE_URL: latin.href, HOOKS_ADDR: '127.0.0.1:0' }
  const looked = await check(env)
  t.equal(looked.code, 1)
  t.match(looked.about('database'), [
    /^fail PostgreSQL server .+: the database has the encoding LATIN1; make one with UTF8$/,
  ])
  for (const args of [['serve', 'hooks'], ['migrate']]) {
    const { code, stderr } = await runCli(args, { env })
    t.equal(code, 1, args.join(' '))
    t.match(stderr, 'gatehouse: the database has the encoding LATIN1; make one with UTF8')
  }
})

t.test('a role that may not create the extension pg_trgm', async (t) => {
  const databases = await sharedPostgres()
  const url = await databases.createDatabase()
  const role = `guest_${randomUUID().replaceAll('-', '')}`
  await run(databases.url(), `create role ${role} login password 'guest'`)
  t.teardown(async () => {
    await databases.dropDatabase(url)
    await run(databases.url(), `drop role ${role}`)
  })
  const guest = new URL(url)
  guest.username = role
  guest.password = 'guest'
  const env = { DATABASE_URL: guest.href, LINKS_ADDR: '127.0.0.1:0' }
  const line = 'the role may not create the extension pg_trgm: grant it CREATE on the database'
  const looked = await check(env)
  t.equal(looked.code, 1)
  t.match(looked.about('database').join(), `: ${line}`)
  for (const args of [['serve', 'links'], ['migrate']]) {
    const { code, stderr } = await runCli(args, { env })
    t.equal(code, 1, args.join(' '))
    t.equal(stderr.trim().split('\n').at(-1), `gatehouse: ${line}`)
  }
  // The remedy that the line names.
  await run(databases.url(), `grant create on database ${guest.pathname.slice(1)} to ${role}`)
  const { code, stderr } = await runCli(['migrate'], { env })
  t.equal(code, 0, stderr)
  t.equal((await check(env)).about('database')[0]?.slice(0, 3), 'ok ')
  await run(databases.url(), `revoke create on database ${guest.pathname.slice(1)} from ${role}`)
  t.equal((await runCli(['migrate'], { env })).code, 0, 'the right is needed only once')
})

t.test('the broker of the queue, which no start waits for', async (t) => {
  const redis = await startRedis(t)
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t), HOOKS_QUEUE_CHANNELS: 'orders' }
  const { host, password } = new URL(redis.url)
  const good = await check({ ...data, HOOKS_QUEUE_URL: redis.url })
  t.same(good.about('queue'), [`ok redis://${host} answers`])
  t.same((await check({ ...data, HOOKS_QUEUE_URL: redis.url }, ['links'])).about('queue'), [])
  const refused = await check({ ...data, HOOKS_QUEUE_URL: `redis://:wrong@${host}` })
  t.match(refused.about('queue'), [/^warn redis:\/\/[\d.:]+ does not answer \(WRONGPASS/])
  redis.freeze()
  const silent = await check({ ...data, HOOKS_QUEUE_URL: redis.url })
  redis.thaw()
  t.match(silent.about('queue'), [/does not answer \(Redis has not answered within 2000 ms\)/])
  t.notMatch(JSON.stringify([good, silent]), password)
  const port = await freePort()
  const away = await check({ ...data, HOOKS_QUEUE_URL: `redis://127.0.0.1:${port}` })
  t.equal(away.code, 0, 'hooks starts all the same')
  t.match(away.about('queue'), [/^warn .*ECONNREFUSED.*: start it, or correct HOOKS_QUEUE_URL$/])
})

t.test('what the operations agent needs: its files', async (t) => {
  const folder = await temporaryFolder(t, 'ops')
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const [inventory, prices] = [join(folder, 'inventory.json'), join(folder, 'prices.json')]
  const env = { ...data, OPS_INVENTORY: inventory, OPS_PRICES: prices }
  const none = await check(env)
  t.equal(none.code, 1)
  t.match(none.about('inventory'), [
    /^fail Inventory .* can't be read: ENOENT.*: correct it; ops does not start without it$/,
  ])
  await writeFile(inventory, '{"services": [{"name": "web", "checks": [{"type": "none"}]}]}')
  await writeFile(prices, '{"m": {"input": -1, "output": 1}}')
  const wrong = await check(env)
  t.equal(wrong.code, 1)
  t.match(wrong.about('inventory'), [/^fail Inventory .*inventory\.json is wrong/])
  t.match(wrong.about('prices'), [/^fail Price table .*prices\.json is wrong: m\.input/])
  t.equal((await check(env, ['hooks', 'links'])).code, 0, 'of no matter to the others')
  await writeFile(inventory, '{"services": []}')
  await writeFile(prices, '{"m": {"input": 1, "output": 1}}')
  const good = await check(env)
  t.equal(good.code, 0)
  t.same(good.about('inventory'), [`ok ${inventory}`])
  t.same(good.about('prices'), [`ok ${prices}`])
  t.same(good.about('sandbox'), [], 'it has no commands')
  await writeFile(inventory, '{"services": [], "readonly": [["find"]]}')
  const programs = await temporaryFolder(t, 'programs')
  const bwrap = join(programs, 'bwrap')
  const path = `${programs}:/usr/bin:/bin`
  await writeFile(bwrap, '#!/bin/sh\nexit 0\n')
  await chmod(bwrap, 0o755)
  t.same((await check({ ...env, PATH: path })).about('sandbox'), ['ok bwrap works'])
  await writeFile(bwrap, '#!/bin/sh\necho no namespaces\nexit 1\n')
  const off = await check({ ...env, PATH: path })
  t.equal(off.code, 0, 'ops starts all the same')
  const problem = 'no namespaces; make bwrap (package bubblewrap) work'
  t.same(off.about('sandbox'), [
    `warn commands of the inventory are off: ${problem}, or set OPS_UNSANDBOXED`,
  ])
  const open = await check({ ...env, PATH: path, OPS_UNSANDBOXED: 'true' })
  t.same(open.about('sandbox'), [`warn commands of the inventory run without: ${problem}`])
})

t.test('what the operations agent needs: its runbooks', async (t) => {
  const folder = await temporaryFolder(t, 'runbooks')
  const inventory = join(folder, 'inventory.json')
  const checks = [{ type: 'memory', runbook: 'memory' }]
  const services = [{ name: 'web', runbook: 'disk', checks }]
  await writeFile(inventory, JSON.stringify({ services }))
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t) }
  const env = { ...data, OPS_INVENTORY: inventory, OPS_RUNBOOKS: folder }
  const text = (name: string): string => `---\nname: ${name}\ndescription: x\n---\n`
  await writeFile(join(folder, 'disk.md'), text('disk'))
  await writeFile(join(folder, 'memory.md'), text('memory'))
  t.same((await check(env)).about('runbooks'), [`ok ${folder}: 2`])
  await writeFile(join(folder, 'memory.md'), 'x')
  const file = join(folder, 'memory.md')
  const why = 'it has no front matter between two lines of ---'
  const wrong = await check(env)
  t.equal(wrong.code, 0, 'ops starts all the same')
  t.same(wrong.about('runbooks'), [
    `warn ${file} is left out: ${why}; correct or move it`,
    'warn service "web" names "memory", which is not there: write it, or correct the inventory',
  ])
  const away = await check({ ...env, OPS_RUNBOOKS: join(folder, 'nothing') })
  t.match(away.about('runbooks'), [/^warn .*nothing is left out: it can't be read: ENOENT/])
  t.same((await check({ ...data, OPS_INVENTORY: inventory })).about('runbooks'), [
    'warn service "web" names "disk", which is not there: set OPS_RUNBOOKS',
    'warn service "web" names "memory", which is not there: set OPS_RUNBOOKS',
  ])
})

t.test('what the operations agent needs: its runner', async (t) => {
  const folder = await temporaryFolder(t, 'programs')
  const data = { GATEHOUSE_DATA_DIR: await temporaryFolder(t), PATH: `/nowhere:${folder}` }
  t.same((await check(data)).about('runner'), [], 'the probe needs nothing')
  const model = await check({ ...data, OPS_RUNNER: 'model' })
  t.same(model.about('runner'), ['warn model, and no session can run: set OPS_MODEL_URL'])
  const cli = { ...data, OPS_RUNNER: 'cli', OPS_AGENT_COMMAND: 'codex --fast' }
  const missing = await check(cli)
  t.equal(missing.code, 0, 'ops starts all the same')
  t.same(missing.about('runner'), [
    'warn cli, and no session can run: there is no program "codex" in PATH; install it, or set OPS_AGENT_COMMAND',
  ])
  const program = join(folder, 'codex')
  await writeFile(program, '#!/bin/sh\n')
  t.match((await check(cli)).about('runner'), ['warn '], 'a file that is no program')
  await chmod(program, 0o755)
  t.same((await check(cli)).about('runner'), [`ok cli, ${program}`])
  const whole = await check({ ...cli, OPS_AGENT_COMMAND: `"${program}" run` })
  t.same(whole.about('runner'), [`ok cli, ${program}`])
})
