import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import type { AddressInfo } from 'node:net'
import { delimiter, join } from 'node:path'
import { createServer } from 'node:tls'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { ended, inventoryFile, startOpsProcess, trigger } from '../helpers/ops-setup.ts'
import type { Event, OpsServer } from '../helpers/ops-setup.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'
import { ROOT } from '../helpers/program.ts'
import type { Env } from '../helpers/program.ts'

const [, postgres] = backends
/** It is good for `localhost` and 127.0.0.1. */
const CERTIFICATE = join(ROOT, 'test', 'fixtures', 'localhost.pem')

/** Whether each check of one session of the probe was good, by name, and the messages of its events. */
async function probed(t: Test, checks: readonly object[], env: Env = {}) {
  const inventory = await inventoryFile(t, { services: [{ name: 'shop', checks }] })
  const ops = await startOpsProcess(t, postgres, { OPS_INVENTORY: inventory, ...env })
  const session = await ended(ops)
  t.match(session, { status: 'completed', exit_code: 0 })
  const states = await postgres.query(ops.env, 'select name, ok from ops.check_states')
  const events = await postgres.query(ops.env, 'select message from ops.events order by id')
  return {
    good: new Map(states.map(({ name, ok }) => [String(name), ok])),
    said: events.map(({ message }) => String(message)),
  }
}

/** The messages of all events, newest first. */
async function said({ api }: OpsServer): Promise<readonly string[]> {
  const { json } = await api<{ events: readonly Event[] }>('GET', '/events')
  return json.events.map(({ message }) => message)
}

/** Variables by which a server runs a module before its own. */
function preloaded(module: string): Env {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(module)}` }
}

t.test('tls: of an address, which no server can be asked for by name', async (t) => {
  const pem = readFileSync(CERTIFICATE)
  const asked: string[] = []
  const server = createServer({
    ...{ key: pem, cert: pem },
    SNICallback(name, done) {
      asked.push(name)
      done(null)
    },
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const check = { type: 'tls', port, timeout_s: 30 }
  const checks = ['127.0.0.1', 'localhost'].map((host) => ({ ...check, host, name: host }))
  const trusted = await probed(t, checks, { NODE_EXTRA_CA_CERTS: CERTIFICATE })
  t.same(trusted.said, [])
  t.same(Object.fromEntries(trusted.good), { '127.0.0.1': true, localhost: true })
  t.same(asked, ['localhost'], 'a name is still asked for')
  const foreign = await probed(t, checks.slice(0, 1))
  t.match(foreign.said, [/^127\.0\.0\.1: the certificate is not trusted: DEPTH_ZERO_SELF_SIGNED/])
})

t.test('process: a text that is not ASCII', async (t) => {
  const match = `größe-漢字-${process.pid}`
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60_000)', match])
  t.teardown(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  const type = 'process'
  const { good } = await probed(t, [
    { type, name: 'there', match },
    { type, name: 'away', match: `${match}ß` },
  ])
  t.same(Object.fromEntries(good), { there: true, away: false })
})

t.test('process: a program is its executable, not a word of its arguments', async (t) => {
  const folder = await temporaryFolder(t, 'programs')
  const name = `a-program-with-a-long-name-${process.pid}`
  const [path, link, script] = [join(folder, name), join(folder, 'link'), join(folder, 'script')]
  copyFileSync('/bin/sleep', path)
  symlinkSync(path, link)
  writeFileSync(script, '#!/bin/sh\nsleep 60; :\n', { mode: 0o755 })
  const other = `${name}-argument`
  for (const argv of [
    [path, '60'],
    [script],
    [process.execPath, '-e', 'setInterval(() => undefined, 60_000)', other, join(folder, 'no')],
  ]) {
    const [program = '', ...args] = argv
    const child = spawn(program, args, { detached: true })
    t.teardown(() => process.kill(-(child.pid ?? 0), 'SIGKILL'))
    await once(child, 'spawn')
  }
  const type = 'process'
  const { good, said } = await probed(t, [
    { type, name: 'name', program: name },
    { type, name: 'path', program: path },
    { type, name: 'link', program: link },
    { type, name: 'script', program: 'script' },
    { type, name: 'both', program: name, match: `${name} 60` },
    { type, name: 'argument', program: other },
    { type, name: 'argument as match', match: other },
    { type, name: 'path of no process', program: join(folder, 'no') },
    { type, name: 'other arguments', program: name, match: `${name} 61` },
    { type, program: 'no-program-has-this-name' },
  ])
  t.same(Object.fromEntries(good), {
    ...{ name: true, path: true, link: true, script: true, both: true, argument: false },
    ...{ 'argument as match': true, 'path of no process': false, 'other arguments': false },
    'process no-program-has-this-name': false,
  })
  t.match(said.join('\n'), `no process of program "${name}" with "${name} 61" runs`)
  t.match(said.join('\n'), `argument: no process of program "${other}" runs`)
})

t.test('file_age: a file may have to be of some size', async (t) => {
  const folder = await temporaryFolder(t, 'backups')
  const [empty, small] = [join(folder, 'empty'), join(folder, 'small')]
  writeFileSync(empty, '')
  writeFileSync(small, '12345')
  const check = { type: 'file_age', max_age_s: 600 }
  const { good, said } = await probed(t, [
    { ...check, name: 'empty', path: empty, min_bytes: 1 },
    { ...check, name: 'stamp', path: empty },
    { ...check, name: 'full', path: small, min_bytes: 1 },
    { ...check, name: 'exact', path: small, min_bytes: 5 },
    { ...check, name: 'small', path: small, min_bytes: 6 },
    { ...check, name: 'folder', path: folder, min_bytes: 1_000_000 },
  ])
  t.same(Object.fromEntries(good), {
    ...{ empty: false, stamp: true, full: true, exact: true, small: false, folder: true },
  })
  t.match(said.join('\n'), /^empty: 0 bytes, expected 1 or more; written \d+ s ago$/m)
  t.match(said.join('\n'), /^small: 5 bytes, expected 6 or more; /m)
})

t.test('command: a gatehouse that is run reads its configuration like any other', async (t) => {
  const folder = await temporaryFolder(t)
  const argv = [process.execPath, join(ROOT, 'server.ts'), 'user', 'list', '--data-dir', folder]
  const { said } = await probed(t, [{ type: 'command', name: 'users', argv, timeout_s: 60 }])
  t.same(said, [])
})

t.test('command: one that is told to end has the time for it', async (t) => {
  const folder = await temporaryFolder(t, 'commands')
  const [up, left] = [join(folder, 'up'), join(folder, 'left')]
  const leaves = `trap 'sleep 0.3; echo bye > ${left}; exit' TERM`
  const argv = ['sh', '-c', `${leaves}; echo up > ${up}; while :; do sleep 0.1; done`]
  const checks = [{ type: 'command', argv, timeout_s: 60 }]
  const inventory = await inventoryFile(t, { services: [{ name: 'shop', checks }] })
  const ops = await startOpsProcess(t, postgres, { OPS_INVENTORY: inventory })
  await until(() => existsSync(up), 'the command')
  await request(`${ops.base}/sessions/1/stop`, { method: 'POST' })
  t.match(await ended(ops), { status: 'stopped' })
  t.ok(existsSync(left))
})

t.test('a deadline may be any part of a second', async (t) => {
  const match = process.execPath
  const check = { type: 'process', match }
  const { good } = await probed(t, [
    { ...check, name: 'long', timeout_s: 16.1 },
    { ...check, name: 'short', timeout_s: 0.0004 },
  ])
  t.equal(good.get('long'), true)
  t.equal(good.size, 2)
})

t.test('checks without a name that look at something long are told apart', async (t) => {
  // No text that a database makes short.
  const long = randomBytes(4_000).toString('hex')
  const command = { type: 'command', argv: ['true', long] }
  const { good } = await probed(t, [command, { ...command, argv: ['false', `${long}1`] }])
  t.same([...good.values()].toSorted(), [false, true])
  for (const name of good.keys()) t.match(name, /^command (?:true|false) [0-9a-f]+…[0-9a-f]{16}$/)
  const lengths = [...good.keys()].map(({ length }) => length)
  t.same(lengths, [200, 200])
})

t.test('unit: a systemd that does not answer is not taken for none', async (t) => {
  const folder = await temporaryFolder(t, 'programs')
  const systemctl = join(folder, 'systemctl')
  function does(script: string): void {
    writeFileSync(systemctl, `#!/bin/sh\n${script}\n`)
    chmodSync(systemctl, 0o755)
  }
  const offline = "System has not been booted with systemd as init system (PID 1). Can't operate."
  does(`echo "${offline}"; exit 1`)
  const inventory = await inventoryFile(t, {
    services: [{ name: 'host', checks: [{ type: 'unit', timeout_s: 2 }] }],
  })
  const PATH = `${folder}${delimiter}${process.env['PATH']}`
  const ops = await startOpsProcess(t, postgres, { OPS_INVENTORY: inventory, PATH })
  await ended(ops)
  t.same(await said(ops), [], 'a machine without systemd is no problem')
  for (const [script, message] of [
    ['exec sleep 60', 'units: no answer within 2 s'],
    [
      'echo "Failed to list units: Connection timed out"; exit 1',
      "units: systemd can't be asked: Failed to list units: Connection timed out",
    ],
    ['kill -9 $$', "units: systemd can't be asked: it was ended by SIGKILL"],
    ['echo "shop.service loaded failed failed Shop"', 'units: failed: shop.service'],
    [':', 'units is good again: no unit has failed'],
  ] as const) {
    does(script)
    await ended(ops, (await trigger(ops)).id)
    t.equal((await said(ops))[0], message)
  }
})

t.test('a file system that hangs costs its own checks, and each of them one call', async (t) => {
  const folder = await temporaryFolder(t, 'mounts')
  const [hangs, calls, old] = ['hangs', 'calls', 'old'].map((name) => join(folder, name))
  for (const file of [hangs, calls, old]) writeFileSync(file ?? '', '')
  // What the kernel does where a file server does not answer: the call stays out, whoever waits for it.
  const env = preloaded(`
    import { appendFileSync, existsSync } from 'node:fs'
    import promises from 'node:fs/promises'
    import { syncBuiltinESMExports } from 'node:module'
    const { stat, statfs } = promises
    const slow = (name, call) => async (path, ...more) => {
      if (!String(path).startsWith(${JSON.stringify(folder)})) return call(path, ...more)
      appendFileSync(${JSON.stringify(calls)}, name + '\\n')
      while (existsSync(${JSON.stringify(hangs)})) await new Promise((done) => setTimeout(done, 20))
      return call(path, ...more)
    }
    promises.stat = slow('stat', stat)
    promises.statfs = slow('statfs', statfs)
    syncBuiltinESMExports()`)
  const most = { timeout_s: 1 }
  const inventory = await inventoryFile(t, {
    services: [
      {
        name: 'host',
        checks: [
          { type: 'disk', name: 'mount', path: folder, max_percent: 100, ...most },
          { type: 'file_age', name: 'backup', path: old, max_age_s: 86_400, ...most },
          { type: 'disk', name: 'root', path: '/', max_percent: 0.0001, timeout_s: 30 },
        ],
      },
    ],
  })
  const ops = await startOpsProcess(t, postgres, { OPS_INVENTORY: inventory, ...env })
  t.match(await ended(ops), { status: 'completed' })
  const first = (await said(ops)).toReversed()
  t.match(first, [
    'mount: no answer within 1 s',
    'backup: no answer within 1 s',
    /^root: [\d.]+ % .* used, expected 0.0001 % at most$/,
  ])
  await ended(ops, (await trigger(ops)).id)
  const second = (await said(ops)).slice(0, 3).toReversed()
  const problem = 'not looked at: the last look at it has not ended yet'
  t.match(second, [`mount: ${problem}`, `backup: ${problem}`, /^root: /])
  const made = () =>
    readFileSync(calls ?? '', 'utf8')
      .trim()
      .split('\n')
      .toSorted()
  t.same(made(), ['stat', 'statfs'], 'no thread more is lost')

  rmSync(hangs ?? '')
  await until(async () => {
    await ended(ops, (await trigger(ops)).id)
    const recovered = (await said(ops)).filter((message) => message.includes('is good again'))
    return recovered.length === 2
  }, 'both checks to be good again')
})

t.test('load: for each processor of the machine, however few the program may use', async (t) => {
  const env = preloaded(`
    import os from 'node:os'
    import { syncBuiltinESMExports } from 'node:module'
    os.availableParallelism = () => 1
    os.cpus = () => Array.from({ length: 4 }, () => ({}))
    os.loadavg = () => [0, 6, 0]
    syncBuiltinESMExports()`)
  const checks = [{ type: 'load', max_per_cpu: 1 }]
  t.same((await probed(t, checks, env)).said, [
    'load: load of 1.5 for each processor, expected 1 at most',
  ])
})

t.test('http: an answer is read as far as something is asked of it', async (t) => {
  const { url } = await startReceiver(t, ({ path }, response) => {
    response.writeHead(path === '/broken' ? 503 : 200)
    // And no end, as of a stream.
    response.write('the beginning')
  })
  const check = { type: 'http', timeout_s: 10 }
  const { good, said: messages } = await probed(t, [
    { ...check, name: 'stream', url },
    { ...check, name: 'broken', url: `${url}/broken`, contains: 'the' },
  ])
  t.same(Object.fromEntries(good), { stream: true, broken: false })
  t.same(messages, ['broken: answered 503, expected 200 to 399'])
})
