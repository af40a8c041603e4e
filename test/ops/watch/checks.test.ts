import { spawn } from 'node:child_process'
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
import { createServer } from 'node:net'
import os from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { t, type Test } from 'tap'
import { postgres } from '../../helpers/backends.ts'
import { docker, framed, startEngine, type Engine } from '../engine.ts'
import { request } from '../../helpers/http.ts'
import { startProbe } from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { ROOT } from '../../helpers/program.ts'
import { secret } from '../../helpers/secrets.ts'
import { until } from '../../helpers/until.ts'
import { finds, type Row } from './finds.ts'
import { listen } from '../../helpers/listen.ts'

// Checks of this machine and of its containers; those of the network have a file of their own.

const key = secret('model-key')
const { lookAt, env, base } = await startProbe(t, { OPS_RUNNER: 'probe', OPS_MODEL_KEY: key })

/** Looks at checks of one kind: each is good, or says what its row has. */
const look = (t: Test, kind: object, rows: readonly Row[]) => finds(t, lookAt, kind, rows)

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
    ['sh', '-c', 'sleep 60; :', other, foreign],
  ]) {
    const child = spawn(program, args, { detached: true })
    t.teardown(() => process.kill(-(child.pid ?? 0), 'SIGKILL'))
    await once(child, 'spawn')
  }
  const none = 'no process of program'
  const ofProgram = `1 process of program "${name}" runs, expected`
  await look(t, { type: 'process' }, [
    ['path', { program: path }],
    ['link', { program: link }],
    ['script', { program: 'script' }],
    ['both', { program: name, match: `${name} 60` }],
    ['not ASCII', { match: foreign }],
    ['one', { program: name, max: 1 }],
    ['away', { program: 'no-such-program', min: 0, max: 0 }],
    ['argument', { program: other }, `${none} "${other}" runs`],
    [
      'other arguments',
      { program: name, match: `${name} 61` },
      `${none} "${name}" with "${name} 61" runs`,
    ],
    ['two', { program: name, min: 2 }, `${ofProgram} 2 or more`],
    ['none', { program: name, min: 0, max: 0 }, `${ofProgram} 0 at most`],
  ])
  const { said } = await lookAt([{ type: 'process', program: 'no-such-program' }])
  t.same(said, [`process no-such-program: ${none} "no-such-program" runs`], 'without a name')
})

t.test('file_age: a file may have to be new, of some size, there or not there', async (t) => {
  const folder = await temporaryFolder(t, 'backups')
  const [empty, old, away] = [join(folder, 'empty'), join(folder, 'old'), join(folder, 'away')]
  writeFileSync(empty, '')
  writeFileSync(old, '12345')
  utimesSync(old, 0, 0)
  // A deadline may be any part of a second.
  const [there, young] = [{ exists: true, timeout_s: 16.1 }, { max_age_s: 600 }]
  await look(t, { type: 'file_age' }, [
    ['an empty file', { path: empty, ...young }],
    ['a folder', { path: folder, ...young }],
    ['an old file', { path: old, ...there }],
    ['its size', { path: old, ...there, min_bytes: 5 }],
    ['away', { path: away, exists: false }],
    ['too old', { path: old, ...young }, /expected/],
    [
      'too empty',
      { path: empty, ...young, min_bytes: 1 },
      /^0 bytes, expected 1 or more; written \d+ s ago$/,
    ],
    ['too small', { path: old, ...there, min_bytes: 6 }, /^5 bytes, expected 6 or more; /],
    ['not there', { path: away, ...there }, 'no such file'],
    ['there', { path: old, exists: false }, 'is there, expected not to be'],
  ])
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

const OFFLINE = "System has not been booted with systemd as init system (PID 1). Can't operate."

/** Gives a function that replaces `systemctl` by a script, until the end of the test. */
async function replaceSystemctl(t: Test) {
  const folder = await temporaryFolder(t, 'programs')
  const { PATH } = process.env
  process.env['PATH'] = `${folder}${delimiter}${PATH}`
  t.teardown(() => void (process.env['PATH'] = PATH))
  return (script: string) =>
    writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

t.test('unit: a systemd that does not answer is not taken for none', async (t) => {
  const systemctl = await replaceSystemctl(t)
  const timedOut = 'Failed to list units: Connection timed out'
  for (const [script, said, timeout_s = 30] of [
    [
      `echo "${OFFLINE}"; exit 1`,
      /^not looked at: .*can't be asked: System has not been booted .*OPS_INVENTORY/,
    ],
    ['exec sleep 60', 'no answer within 0.2 s', 0.2],
    [`echo "${timedOut}"; exit 1`, `systemd can't be asked: ${timedOut}`],
    ['echo "shop.service loaded failed failed Shop"', 'failed: shop.service'],
    [':', undefined],
  ] as const) {
    systemctl(script)
    await look(t, { type: 'unit', timeout_s }, [['units', {}, said]])
  }
})

t.test('what could not be looked at is unknown, and says how to look', async (t) => {
  const systemctl = await replaceSystemctl(t)
  systemctl(`echo "${OFFLINE}"; exit 1`)
  const folder = await temporaryFolder(t, 'obstacles')
  const file = (name: string) => join(folder, name)
  const [denied, full, ahead] = [file('denied'), file('full'), file('ahead')]
  for (const path of [denied, full, ahead]) writeFileSync(path, '')
  const tomorrow = Date.now() / 1_000 + 86_400
  utimesSync(ahead, tomorrow, tomorrow)
  const failing = (code: string) => Promise.reject(Object.assign(new Error(code), { code }))
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
  const unit = { type: 'unit', unit: 'shop.service', level: 'info' }
  /** Each with its reason and its remedy. */
  const rows = [
    [{ ...age, path: denied }, 'permission denied.*; .*give the user of Gatehouse the right'],
    [{ ...age, path: full }, 'no more files can be opened.*; .*raise LimitNOFILE'],
    [{ ...age, path: ahead }, String.raw`its time is 86\d+ s ahead.*; .*set the clocks`],
    [
      { ...age, path: folder, min_bytes: 1 },
      'the size of a folder says nothing.*; .*take min_bytes out',
    ],
    [{ type: 'disk', path: '/proc' }, 'its file system has no size.*; .*name a path on a disk'],
    [{ type: 'memory' }, '/proc/meminfo does not say it.*; .*leave this check out'],
    [{ type: 'command', argv: [file('nothing')] }, 'ENOENT.*; .*name a program in the inventory'],
    [unit, "systemd can't be asked: System has not been.*; .*run Gatehouse on the host"],
  ] as const
  const { states } = await look(
    t,
    {},
    rows.map(([check, says], at) => [`${at}`, check, new RegExp(`^not looked at: .*${says}`)]),
  )
  t.same(new Set(Object.values(states)), new Set(['unknown']))
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
  const says = 'load of 1.5 for each processor, expected 1 at most'
  await look(t, { type: 'load', max_per_cpu: 1 }, [['load', {}, says]])
})

t.test('what a check quotes has no secret, nor half of one where it is cut', async (t) => {
  const says = (text: string): object => {
    return { type: 'command', argv: ['sh', '-c', `echo '${text}'; exit 1`] }
  }
  // Of the last line 200 characters are quoted; without a name a check is called as its command.
  const cut = `${'x'.repeat(190)}${key}`
  const { said } = await lookAt([says(`the key is ${key}`), { ...says(cut), name: 'long' }])
  t.match(said, ['«redacted»', '«redacted»'])
  for (const table of ['events', 'sessions', 'session_lines', 'checks', 'memories']) {
    const rows = await postgres.query(env, `select * from ops.${table}`)
    t.ok(rows.length > 0 || table === 'memories', table)
    t.notMatch(JSON.stringify(rows), key.slice(0, 10), table)
  }
})

/** As Podman 4.3.1 of Debian 12 answered. */
const podman: Engine = JSON.parse(
  readFileSync(join(ROOT, 'test', 'fixtures', 'containers', 'podman-4.3.1.json'), 'utf8'),
)

t.test('container: what Podman says of containers', async (t) => {
  const looping = podman.containers['looping'] as { State: object }
  const justNow = new Date(Date.now() - 1_000).toISOString()
  const { socket, requests } = await startEngine(t, {
    ...podman,
    containers: {
      ...podman.containers,
      looping: { ...looping, State: { ...looping.State, StartedAt: justNow } },
    },
  })
  const ends = 'its log ends with'
  const says = {
    web: undefined,
    db: `is unhealthy; ${ends}: database up`,
    worker: `has exited with 3; ${ends}: out line | err line`,
    tty: `has exited with 4; ${ends}: tty line`,
    made: 'was never started',
    held: 'is paused',
    looping: /^has just restarted, \d s ago; restarts so far: \d+; its log ends with: no config/,
    done: 'has exited with 0',
    stopped: 'has exited with 137',
    no: 'there is no such container',
  }
  await look(
    t,
    { type: 'container', socket },
    Object.entries(says).map(([name, line]) => [name, { container: name }, line]),
  )
  const others = requests.filter((request) => !request.startsWith('GET '))
  t.same(others, [], 'nothing but GET is sent')

  const all =
    'db is unhealthy, worker has exited with 3, tty has exited with 4, stopped has exited with 137'
  await look(t, { type: 'container', socket }, [['containers', {}, all]])
})

t.test('container: what Docker says of containers', async (t) => {
  const stopped = { Status: 'exited', ExitCode: 137, OOMKilled: true, Error: 'no space' }
  const checks = [{ Output: 'before' }, { Output: 'connection refused\n' }]
  const ill = { Status: 'running', Health: { Status: 'unhealthy', Log: checks } }
  const containers = {
    restarting: docker('restarting', { Status: 'restarting', ExitCode: 1 }),
    killed: docker('killed', stopped),
    ill: docker('ill', ill),
    fresh: docker('fresh', { Status: 'running', Health: { Status: 'starting' } }),
    well: docker('well', { Status: 'running' }, { RestartCount: 2 }),
  }
  const colours = '\u001b[31mred\u001b[0m\r\n'
  const logs = {
    restarting: framed('first\n', `key ${key.slice(0, 5)}`, `${key.slice(5)}\n`, colours),
    killed: framed('x'.repeat(70_000)),
  }
  const engine = { version: '1.51', list: [], unhealthy: [], containers, logs }
  const { socket } = await startEngine(t, engine)
  const restarting = 'is restarting after it has ended with 1'
  const { said } = await look(t, { type: 'container', socket }, [
    [
      'restarting',
      { container: 'restarting' },
      `${restarting}; its log ends with: first | key «redacted» | red`,
    ],
    [
      'killed',
      { container: 'killed' },
      'has exited with 137: it was out of memory, no space; its log ends with: (a line that is too long)',
    ],
    ['ill', { container: 'ill' }, 'is unhealthy: connection refused'],
    ['fresh', { container: 'fresh' }],
    ['well', { container: 'well' }],
    ['quiet', { container: 'restarting', log_lines: 0 }, restarting],
    // A list without any.
    ['all', {}],
  ])
  t.notMatch(said.join(), 'hidden', 'variables are shown nowhere')
})

t.test(
  'container: all are looked at, and one that is not well is told of with its log',
  async (t) => {
    const many = Array.from({ length: 12 }, (_, at) => ({
      Id: `c${at}`,
      Names: [`/c${at}`],
      State: 'restarting',
      Status: 'Restarting (1)',
    }))
    const one = { Id: 'a', Names: ['/a'], State: 'running', Status: 'Up 2 hours (unhealthy)' }
    const state = { Status: 'running', Health: { Status: 'unhealthy' } }
    const containers = { a: docker('a', state) }
    const single = {
      version: '1.51',
      list: [one],
      unhealthy: [one],
      containers,
      logs: { a: framed('no disk\n') },
    }
    const { socket } = await startEngine(t, single)
    const crowd = await startEngine(t, { ...single, list: many, unhealthy: [] })
    await look(t, { type: 'container' }, [
      ['containers', { socket }, 'a is unhealthy; its log ends with: no disk'],
      ['crowd', { socket: crowd.socket }, /^c0 is restarting, .*c9 is restarting, and 2 more$/],
    ])
  },
)

t.test('container: a socket that is not there, refuses or is silent', async (t) => {
  const empty = { version: '1.51', list: [], unhealthy: [], containers: {}, logs: {} }
  const refusing = await startEngine(t, empty, 403)
  const broken = await startEngine(t, empty, 500)
  const folder = await temporaryFolder(t, 'sockets')
  const silent = join(folder, 'silent.sock')
  await listen(
    t,
    createServer(() => undefined),
    { path: silent },
  )
  const container = 'web'
  const { states } = await look(t, { type: 'container', timeout_s: 30 }, [
    [
      'absent',
      { container, socket: join(folder, 'absent.sock') },
      /^not looked at: .*absent\.sock: no such file; name a socket that/,
    ],
    [
      'refusing',
      { container, socket: refusing.socket },
      /^not looked at: GET \/containers\/web\/json was answered with 403; name a/,
    ],
    ['broken', { socket: broken.socket }, 'GET /containers/json?all=1 was answered with 500'],
    ['silent', { container, socket: silent, timeout_s: 0.5 }, 'no answer within 0.5 s'],
  ])
  t.same(states, { absent: 'unknown', refusing: 'unknown', broken: 'FAIL', silent: 'FAIL' })
})

/** Stops the session that runs. */
async function stopRunning() {
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
) {
  const usual = module[name]
  module[name] = make(usual)
  syncBuiltinESMExports()
  t.teardown(() => {
    module[name] = usual
    syncBuiltinESMExports()
  })
}
