import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { t } from 'tap'
import { docker, framed, startEngine } from '../helpers/containers.ts'
import type { Engine } from '../helpers/containers.ts'
import { startProbe } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'

const key = secret('model-key')
const { lookAt } = await startProbe(t, { OPS_RUNNER: 'probe', OPS_MODEL_KEY: key })

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
  const names = ['web', 'db', 'worker', 'tty', 'made', 'held', 'looping', 'done', 'stopped', 'no']
  const checks = names.map((name) => ({ type: 'container', name, container: name, socket }))
  const { good, said } = await lookAt(checks)
  t.same(
    Object.entries(good).filter(([, isGood]) => isGood === true),
    [['web', true]],
  )
  t.match(said, [
    'db: is unhealthy; its log ends with: database up',
    'worker: has exited with 3; its log ends with: out line | err line',
    'tty: has exited with 4; its log ends with: tty line',
    'made: was never started',
    'held: is paused',
    /^looping: has just restarted, \d s ago; restarts so far: \d+; its log ends with: no config/,
    'done: has exited with 0',
    'stopped: has exited with 137',
    'no: there is no such container',
  ])
  t.equal(said.length, 9)
  t.ok(
    requests.every((request) => request.startsWith('GET ')),
    'nothing but GET is sent',
  )

  const all = await lookAt([{ type: 'container', socket }])
  t.same(all.said, [
    'containers: db is unhealthy, worker has exited with 3, tty has exited with 4, stopped has exited with 137',
  ])
})

t.test('container: what Docker says of containers', async (t) => {
  const stopped = { Status: 'exited', ExitCode: 137, OOMKilled: true, Error: 'no space' }
  const checks = [{ Output: 'before' }, { Output: 'connection refused\n' }]
  const ill = { Status: 'running', Health: { Status: 'unhealthy', Log: checks } }
  const containers = {
    restarting: docker('restarting', { Status: 'restarting', ExitCode: 1 }),
    dead: docker('dead', { Status: 'dead', ExitCode: 0 }),
    killed: docker('killed', stopped),
    ill: docker('ill', ill),
    fresh: docker('fresh', { Status: 'running', Health: { Status: 'starting' } }),
    well: docker(
      'well',
      { Status: 'running', Health: { Status: 'healthy' } },
      { RestartCount: 2 },
    ),
  }
  const colours = '\u001b[31mred\u001b[0m\r\n'
  const logs = {
    restarting: framed('first\n', `key ${key.slice(0, 5)}`, `${key.slice(5)}\n`, colours),
    // A header, and a frame that has not come whole.
    dead: Buffer.from([1, 0, 0, 0, 0, 0, 0, 99, 0x68, 0x69]).toString('base64'),
    killed: framed('x'.repeat(70_000)),
  }
  const engine = { version: '1.51', list: [], unhealthy: [], containers, logs }
  const { socket } = await startEngine(t, engine)
  const named = (name: string): object => ({ type: 'container', name, container: name, socket })
  const { good, said } = await lookAt([
    ...Object.keys(containers).map(named),
    { ...named('restarting'), name: 'quiet', log_lines: 0 },
  ])
  t.match(good, { fresh: true, well: true })
  t.same(said, [
    'restarting: is restarting after it has ended with 1; its log ends with: first | key «redacted» | red',
    'dead: is dead; its log ends with: hi',
    'killed: has exited with 137: it was out of memory, no space; its log ends with: (a line that is too long)',
    'ill: is unhealthy: connection refused',
    'quiet: is restarting after it has ended with 1',
  ])
  t.notMatch(said.join(), 'hidden', 'variables are shown nowhere')

  t.same((await lookAt([{ type: 'container', socket }])).good, { containers: true })
})

t.test(
  'container: all are looked at, and one that is not well is told of with its log',
  async (t) => {
    const many = Array.from({ length: 12 }, (_, at) => ({
      ...{ Id: `c${at}`, Names: [`/c${at}`], State: 'restarting', Status: 'Restarting (1)' },
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
    const check = { type: 'container', socket }
    t.same((await lookAt([check])).said, [
      'containers: a is unhealthy; its log ends with: no disk',
    ])
    const crowd = await startEngine(t, { ...single, list: many, unhealthy: [] })
    t.match((await lookAt([{ ...check, name: 'crowd', socket: crowd.socket }])).said, [
      /^crowd: c0 is restarting, .*c9 is restarting, and 2 more$/,
    ])
  },
)

t.test('container: a socket that is not there, refuses or is silent', async (t) => {
  const empty = { version: '1.51', list: [], unhealthy: [], containers: {}, logs: {} }
  const refusing = await startEngine(t, empty, 403)
  const broken = await startEngine(t, empty, 500)
  const folder = await temporaryFolder(t, 'sockets')
  const silent = join(folder, 'silent.sock')
  const server = createServer(() => undefined)
  await new Promise<void>((resolve) => server.listen(silent, resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const check = { type: 'container', container: 'web', timeout_s: 30 }
  const { states, said } = await lookAt([
    { ...check, name: 'absent', socket: join(folder, 'absent.sock') },
    { ...check, name: 'refusing', socket: refusing.socket },
    { type: 'container', name: 'broken', socket: broken.socket, timeout_s: 30 },
    { ...check, name: 'silent', socket: silent, timeout_s: 0.5 },
  ])
  t.same(states, { absent: 'unknown', refusing: 'unknown', broken: 'FAIL', silent: 'FAIL' })
  t.match(said, [
    /^absent: not looked at: .*absent\.sock: no such file; name a socket that/,
    /^refusing: not looked at: GET \/containers\/web\/json was answered with 403; name a/,
    'broken: GET /containers/json?all=1 was answered with 500',
    'silent: no answer within 0.5 s',
  ])
})
