import { spawn } from 'node:child_process'
import { randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startProbe } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends
const key = secret('model-key')
const { lookAt, env, base } = await startProbe(t, { OPS_RUNNER: 'probe', OPS_MODEL_KEY: key })

t.test('tls: of an address, which no server can be asked for by name', async (t) => {
  // It is good for `localhost` and 127.0.0.1.
  const pem = readFileSync(join(ROOT, 'test', 'fixtures', 'localhost.pem'))
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
  const foreign = await lookAt(checks.slice(0, 1))
  const problem = /^127\.0\.0\.1: the certificate is not trusted: DEPTH_ZERO_SELF_SIGNED/
  t.match(foreign.said, [problem])
  const known = getCACertificates()
  setDefaultCACertificates([...known, new X509Certificate(pem).toString()])
  t.teardown(() => setDefaultCACertificates(known))
  const trusted = await lookAt(checks)
  t.same(trusted.good, { '127.0.0.1': true, localhost: true })
  t.same(asked, ['localhost'], 'a name is still asked for')
})

t.test('process: a program is its executable, not a word of its arguments', async (t) => {
  const folder = await temporaryFolder(t, 'programs')
  const name = `a-program-with-a-long-name-${process.pid}`
  const [path, link, script] = [join(folder, name), join(folder, 'link'), join(folder, 'script')]
  copyFileSync('/bin/sleep', path)
  symlinkSync(path, link)
  writeFileSync(script, '#!/bin/sh\nsleep 60; :\n', { mode: 0o755 })
  const [other, foreign] = [`${name}-argument`, `größe-漢字-${process.pid}`]
  for (const [program = '', ...args] of [
    [path, '60'],
    [script],
    ['sh', '-c', 'sleep 60; :', other, join(folder, 'no'), foreign],
  ]) {
    const child = spawn(program, args, { detached: true })
    t.teardown(() => process.kill(-(child.pid ?? 0), 'SIGKILL'))
    await once(child, 'spawn')
  }
  const type = 'process'
  const { good, said } = await lookAt([
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
    { type, name: 'not ASCII', match: foreign },
    { type, name: 'not ASCII, away', match: `${foreign}ß` },
    { type, name: 'two', program: name, min: 2 },
    { type, name: 'none', program: name, min: 0, max: 0 },
    { type, name: 'one', program: name, max: 1 },
    { type, name: 'away', program: 'no-program-has-this-name', min: 0, max: 0 },
  ])
  t.same(good, {
    ...{ name: true, path: true, link: true, script: true, both: true, argument: false },
    ...{ 'argument as match': true, 'path of no process': false, 'other arguments': false },
    ...{ 'process no-program-has-this-name': false, 'not ASCII': true, 'not ASCII, away': false },
    ...{ two: false, none: false, one: true, away: true },
  })
  const ofProgram = `1 process of program "${name}" runs, expected`
  t.ok(said.includes(`two: ${ofProgram} 2 or more`))
  t.ok(said.includes(`none: ${ofProgram} 0 at most`))
  t.ok(said.includes(`other arguments: no process of program "${name}" with "${name} 61" runs`))
  t.ok(said.includes(`argument: no process of program "${other}" runs`))
})

t.test('file_age: a file may have to be of some size', async (t) => {
  const folder = await temporaryFolder(t, 'backups')
  const [empty, small] = [join(folder, 'empty'), join(folder, 'small')]
  writeFileSync(empty, '')
  writeFileSync(small, '12345')
  const check = { type: 'file_age', max_age_s: 600 }
  const { good, said } = await lookAt([
    { ...check, name: 'empty', path: empty, min_bytes: 1 },
    { ...check, name: 'stamp', path: empty },
    { ...check, name: 'full', path: small, min_bytes: 1 },
    { ...check, name: 'exact', path: small, min_bytes: 5 },
    { ...check, name: 'small', path: small, min_bytes: 6 },
    { ...check, name: 'folder', path: folder },
  ])
  t.same(good, {
    ...{ empty: false, stamp: true, full: true, exact: true, small: false, folder: true },
  })
  t.match(said.join('\n'), /^empty: 0 bytes, expected 1 or more; written \d+ s ago$/m)
  t.match(said.join('\n'), /^small: 5 bytes, expected 6 or more; /m)
})

t.test('file_age: a file may have to be there, or not to be', async (t) => {
  const folder = await temporaryFolder(t, 'marks')
  const [there, away] = [join(folder, 'there'), join(folder, 'away')]
  writeFileSync(there, '12345')
  utimesSync(there, 0, 0)
  const check = { type: 'file_age' }
  const { good, said } = await lookAt([
    { ...check, name: 'there', path: there, exists: true },
    { ...check, name: 'small', path: there, exists: true, min_bytes: 6 },
    { ...check, name: 'missing', path: away, exists: true },
    { ...check, name: 'left', path: there, exists: false },
    { ...check, name: 'gone', path: away, exists: false },
  ])
  t.same(good, { there: true, small: false, missing: false, left: false, gone: true })
  t.match(said, [
    /^small: 5 bytes, expected 6 or more; /,
    'missing: no such file',
    'left: is there, expected not to be',
  ])
})

t.test('command: a gatehouse that is run reads its configuration like any other', async (t) => {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const program = [process.execPath, join(ROOT, 'server.ts'), 'user', 'list']
  const argv = ['env', ...variables, ...program]
  const { good } = await lookAt([{ type: 'command', name: 'users', argv, timeout_s: 60 }])
  t.same(good, { users: true })
})

t.test('command: one that is told to end has the time for it', async (t) => {
  const folder = await temporaryFolder(t, 'commands')
  const [up, left] = [join(folder, 'up'), join(folder, 'left')]
  const leaves = `trap 'sleep 0.3; echo bye > ${left}; exit' TERM`
  const argv = ['sh', '-c', `${leaves}; echo up > ${up}; while :; do sleep 0.1; done`]
  const stopped = lookAt([{ type: 'command', argv, timeout_s: 60 }])
  await until(() => existsSync(up), 'the command')
  await stopRunning()
  t.match((await stopped).session, { status: 'stopped' })
  t.ok(existsSync(left))
})

t.test('a deadline may be any part of a second', async (t) => {
  const check = { type: 'disk', path: '/', max_percent: 100 }
  const { session, good } = await lookAt([
    { ...check, name: 'long', timeout_s: 16.1 },
    { ...check, name: 'short', timeout_s: 0.0004 },
  ])
  t.equal(session.status, 'completed')
  t.equal(good['long'], true)
  t.same(Object.keys(good).toSorted(), ['long', 'short'])
})

t.test('checks without a name that look at something long are told apart', async (t) => {
  // No text that a database makes short.
  const long = randomBytes(4_000).toString('hex')
  const command = { type: 'command', argv: ['true', long] }
  const { session, good } = await lookAt([command, { ...command, argv: ['false', `${long}1`] }])
  t.equal(session.status, 'completed')
  const states = await postgres.query(
    env,
    `select name, state from ops.checks where name like 'command % ' || $1 || '%' order by state`,
    [long.slice(0, 100)],
  )
  t.same(Object.fromEntries(states.map(({ name, state }) => [name, state === 'ok'])), good)
  t.match(states, [{ state: 'ok' }, { state: 'warn' }])
  for (const name of Object.keys(good)) {
    t.match(name, /^command (?:true|false) [0-9a-f]+…[0-9a-f]{16}$/)
    t.equal(name.length, 200)
  }
})

const OFFLINE = "System has not been booted with systemd as init system (PID 1). Can't operate."

/** Gives a function that replaces `systemctl` by a script, until the end of the test. */
async function replaceSystemctl(t: Test): Promise<(script: string) => void> {
  const folder = await temporaryFolder(t, 'programs')
  const { PATH } = process.env
  process.env['PATH'] = `${folder}${delimiter}${PATH}`
  t.teardown(() => void (process.env['PATH'] = PATH))
  return (script) =>
    writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

t.test('unit: a systemd that does not answer is not taken for none', async (t) => {
  const systemctl = await replaceSystemctl(t)
  for (const [script, timeout_s, said] of [
    [
      `echo "${OFFLINE}"; exit 1`,
      30,
      [/^units: not looked at: .*can't be asked: System has not been booted .*OPS_INVENTORY/],
    ],
    ['exec sleep 60', 0.2, ['units: no answer within 0.2 s']],
    [
      'echo "Failed to list units: Connection timed out"; exit 1',
      ...[30, ["units: systemd can't be asked: Failed to list units: Connection timed out"]],
    ],
    ['kill -9 $$', 30, ["units: systemd can't be asked: it was ended by SIGKILL"]],
    ['echo "shop.service loaded failed failed Shop"', 30, ['units: failed: shop.service']],
    [':', 30, []],
  ] as const) {
    systemctl(script)
    const found = await lookAt([{ type: 'unit', timeout_s }])
    t.equal(found.said.length, said.length)
    t.match(found.said, said)
  }
})

t.test('what could not be looked at is unknown, and says how to look', async (t) => {
  const systemctl = await replaceSystemctl(t)
  systemctl(`echo "${OFFLINE}"; exit 1`)
  const folder = await temporaryFolder(t, 'obstacles')
  const [denied, full, ahead] = [
    join(folder, 'denied'),
    join(folder, 'full'),
    join(folder, 'ahead'),
  ]
  for (const file of [denied, full, ahead]) writeFileSync(file, '')
  const tomorrow = Date.now() / 1_000 + 86_400
  utimesSync(ahead, tomorrow, tomorrow)
  const failing = (code: string): Promise<never> =>
    Promise.reject(Object.assign(new Error(code), { code }))
  replace(t, promises, 'stat', (stat) => {
    const imitation = (...args: Parameters<typeof stat>) => {
      if (args[0] === denied) return failing('EACCES')
      return args[0] === full ? failing('EMFILE') : stat(...args)
    }
    return imitation as typeof stat
  })
  replace(t, promises, 'readFile', (readFile) => {
    const imitation = async (...args: Parameters<typeof readFile>) => {
      // As some containers write it.
      return args[0] === '/proc/meminfo' ? 'MemFree: 5 kB\n' : readFile(...args)
    }
    return imitation as typeof readFile
  })
  const age = { type: 'file_age', max_age_s: 60 }
  const { states, said } = await lookAt([
    { ...age, name: 'denied', path: denied },
    { ...age, name: 'full', path: full },
    { ...age, name: 'ahead', path: ahead },
    { ...age, name: 'folder', path: folder, min_bytes: 1 },
    { type: 'disk', name: 'pseudo', path: '/proc' },
    { type: 'memory' },
    { type: 'command', name: 'away', argv: [join(folder, 'nothing')] },
    { type: 'unit', name: 'ours', unit: 'shop.service', level: 'info' },
    { ...age, name: 'missing', path: join(folder, 'nothing'), level: 'critical' },
    { ...age, name: 'gone', path: join(folder, 'nothing') },
  ])
  t.same(states, {
    ...{ denied: 'unknown', full: 'unknown', ahead: 'unknown', folder: 'unknown' },
    ...{ pseudo: 'unknown', memory: 'unknown', away: 'unknown', ours: 'unknown' },
    ...{ missing: 'FAIL', gone: 'warn' },
  })
  for (const [name, reason, remedy] of [
    ['denied', 'permission denied', 'give the user of Gatehouse the right'],
    ['full', 'no more files can be opened', 'raise LimitNOFILE'],
    ['ahead', String.raw`its time is 86\d+ s ahead`, 'set the clocks'],
    ['folder', 'the size of a folder says nothing', 'take min_bytes out'],
    ['pseudo', 'its file system has no size', 'name a path on a disk'],
    ['memory', '/proc/meminfo does not say it', 'leave this check out'],
    ['away', 'ENOENT', 'name a program in the inventory'],
    ['ours', "systemd can't be asked: System has not been", 'run Gatehouse on the host'],
  ] as const) {
    const line = new RegExp(`^${name}: not looked at: .*${reason}.*; .*${remedy}`)
    t.ok(
      said.some((message) => line.test(message)),
      name,
    )
  }
})

t.test('a file system that hangs costs its own checks, and each of them one call', async (t) => {
  const folder = await temporaryFolder(t, 'mounts')
  const [hangs, old] = [join(folder, 'hangs'), join(folder, 'old')]
  for (const file of [hangs, old]) writeFileSync(file, '')
  // What the kernel does where a file server does not answer: the call does not return.
  const calls: string[] = []
  const slow = <F extends (...args: never) => unknown>(call: F): F =>
    new Proxy(call, {
      async apply(_, self, args) {
        if (String(args[0]).startsWith(folder)) {
          calls.push(call.name)
          while (existsSync(hangs)) await pause(20)
        }
        return Reflect.apply(call, self, args)
      },
    })
  replace(t, promises, 'stat', slow)
  replace(t, promises, 'statfs', slow)
  const most = { timeout_s: 0.5 }
  const checks = [
    { type: 'disk', name: 'mount', path: folder, max_percent: 100, ...most },
    { type: 'file_age', name: 'backup', path: old, max_age_s: 86_400, ...most },
    { type: 'disk', name: 'root', path: '/', max_percent: 0.0001, timeout_s: 30 },
  ]
  const first = await lookAt(checks)
  t.equal(first.session.status, 'completed')
  t.match(first.said, [
    'mount: no answer within 0.5 s',
    'backup: no answer within 0.5 s',
    /^root: [\d.]+ % .* used, expected 0.0001 % at most$/,
  ])
  const problem = 'no answer: the last look at it has not ended yet'
  const second = await lookAt(checks)
  t.match(second.said, [`mount: ${problem}`, `backup: ${problem}`, /^root: /])
  t.same(calls.toSorted(), ['stat', 'statfs'], 'no thread more is lost')

  const patient = [
    { type: 'disk', name: 'patient', path: folder, max_percent: 100, timeout_s: 60 },
  ]
  const stopped = lookAt(patient)
  await until(() => calls.length === 3, 'the look at it')
  await stopRunning()
  t.match((await stopped).session, { status: 'stopped' })
  const { states } = await lookAt(patient)
  t.same(states, { patient: 'unknown' }, 'a look that was interrupted says nothing')

  rmSync(hangs)
  await until(async () => {
    const { good } = await lookAt(checks)
    return good['mount'] === true && good['backup'] === true
  }, 'both checks to be good again')
})

t.test('load: for each processor of the machine, however few the program may use', async (t) => {
  replace(t, os, 'availableParallelism', () => () => 1)
  replace(t, os, 'cpus', (cpus) => () => cpus().concat(cpus(), cpus(), cpus()).slice(0, 4))
  replace(t, os, 'loadavg', () => () => [0, 6, 0])
  t.same((await lookAt([{ type: 'load', max_per_cpu: 1 }])).said, [
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
  const { good, said } = await lookAt([
    { ...check, name: 'stream', url },
    { ...check, name: 'broken', url: `${url}/broken`, contains: 'the' },
  ])
  t.same(good, { stream: true, broken: false })
  t.same(said, ['broken: answered 503, expected 200 to 399'])
})

t.test('what a check quotes has no secret, nor half of one where it is cut', async (t) => {
  const says = (text: string): object => {
    return { type: 'command', argv: ['sh', '-c', `echo '${text}'; exit 1`] }
  }
  // Of the last line 200 characters are quoted; without a name a check is called as its command.
  const cut = `${'x'.repeat(190)}${key}`
  const { said } = await lookAt([says(`the key is ${key}`), { ...says(cut), name: 'long' }])
  t.match(said, [/«redacted»/, /«redacted»/])
  for (const table of ['events', 'sessions', 'session_lines', 'checks', 'memories']) {
    const rows = await postgres.query(env, `select * from ops.${table}`)
    t.ok(rows.length > 0 || table === 'memories', table)
    t.notMatch(JSON.stringify(rows), key.slice(0, 10), table)
  }
})

/** Stops the session that runs. */
async function stopRunning(): Promise<void> {
  const page = await (await fetch(base)).text()
  const [, id] = /href="\/sessions\/(\d+)"/.exec(page) ?? []
  await request(`${base}/sessions/${id}/stop`, { method: 'POST' })
}

/** Replaces a function of one of Node's modules until the end of the test. */
function replace<M extends object, K extends keyof M>(
  t: Test,
  module: M,
  name: K,
  make: (usual: M[K]) => M[K],
): void {
  const usual = module[name]
  module[name] = make(usual)
  syncBuiltinESMExports()
  t.teardown(() => {
    module[name] = usual
    syncBuiltinESMExports()
  })
}
