import { execFile, spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { t } from 'tap'
import { messageOf } from '../../kernel/log.ts'
import { postgres } from '../helpers/backends.ts'
import { startModel, type Call } from '../helpers/model.ts'
import { ended, inventoryFile, startOps, startProbe } from '../helpers/ops.ts'
import type { Owner } from '../helpers/owner.ts'
import { recordChild } from '../helpers/program.ts'
import { useTools } from '../helpers/tools.ts'
import { until } from '../helpers/until.ts'
import { longParts, lacks, onPath } from '../runner/system-parts.ts'
import { openPodman } from './podman.ts'

/** A container that does nothing for long, and ends at once when it is told to. */
const WAIT = 'trap exit TERM; while :; do sleep 0.2; done'

/** A Podman with a store of its own, and an image of BusyBox. */
async function startPodman(t: Owner) {
  const { folder, podman, env } = await openPodman(t)
  const bin = join(folder, 'image', 'bin')
  mkdirSync(bin, { recursive: true })
  copyFileSync(onPath('busybox') ?? '', join(bin, 'busybox'))
  for (const name of ['sh', 'sleep', 'true']) symlinkSync('busybox', join(bin, name))
  const tar = join(folder, 'image.tar')
  await promisify(execFile)('tar', ['-C', join(folder, 'image'), '-cf', tar, '.'])
  await podman('import', tar, 'localhost/busybox:test')

  const socket = join(folder, 'podman.sock')
  const service = spawn('podman', ['system', 'service', '-t0', `unix://${socket}`], {
    env: { ...process.env, ...env },
    stdio: 'ignore',
  })
  recordChild(service)
  t.teardown(() => void service.kill())
  return {
    podman,
    socket,
    run: (name: string, script: string, ...more: string[]) =>
      podman(
        'run',
        '--detach',
        '--network',
        'none',
        '--name',
        name,
        ...more,
        'localhost/busybox:test',
        '/bin/sh',
        '-c',
        script,
      ),
  }
}

await t.test('containers of Podman', { skip: lacks(longParts.podman) }, async (t) => {
  const { podman, run, socket } = await startPodman(t)
  const first = await run('web', `echo started; ${WAIT}`).then(() => undefined, messageOf)
  if (first !== undefined) {
    t.pass('a container runs', { skip: `none can run here: ${first}` })
    return
  }
  await run('db', `echo no disk; ${WAIT}`, '--health-cmd=exit 1', '--health-retries=1')
  await run('cache', WAIT, '--health-cmd=true', '--health-retries=1')
  await run('worker', 'echo out; echo err >&2; exit 3')
  await run('terminal', 'echo hello; exit 4', '--tty')
  await run('held', WAIT)
  await podman('pause', 'held')
  await run('looping', 'sleep 1; exit 1', '--restart=on-failure')
  await podman('create', '--name', 'made', 'localhost/busybox:test', '/bin/true')
  await podman('healthcheck', 'run', 'db').catch(() => undefined)

  const { lookAt } = await startProbe(t, { OPS_RUNNER: 'probe' })
  const named = (name: string) => {
    return { type: 'container', name, container: name, socket, timeout_s: 60 }
  }
  const names = ['web', 'db', 'worker', 'terminal', 'held', 'made', 'nobody']
  await until(async () => {
    const { messages } = await lookAt([named('looping')])
    return messages.some((message) => message.startsWith('looping: has just restarted'))
  }, 'a container that has restarted')
  const { good, messages } = await lookAt(names.map(named))
  t.equal(good['web'], true)
  t.match(messages.toSorted(), [
    'db: is unhealthy; its log ends with: no disk',
    'held: is paused',
    'made: was never started',
    'nobody: there is no such container',
    'terminal: has exited with 4; its log ends with: hello',
    'worker: has exited with 3; its log ends with: out | err',
  ])
  const all = { type: 'container', socket, timeout_s: 60 }
  const { messages: found } = await lookAt([all])
  t.equal(found.length, 1)
  for (const part of [
    'db is unhealthy',
    'worker has exited with 3',
    'terminal has exited with 4',
  ]) {
    t.match(found[0], part)
  }

  const model = await startModel(t)
  const logs = ['worker', 'terminal', 'nobody'].map((container) => ({ container, socket }))
  const OPS_INVENTORY = await inventoryFile(t, { services: [{ name: 'shop', checks: [], logs }] })
  const ops = await startOps(t, postgres, { ...model.env, OPS_INVENTORY })
  await ended(ops)
  const log = (name: string, args: object = {}): Call => {
    return ['read_log', { service: 'shop', log: name, ...args }]
  }
  const answers = await useTools(t, { model, ops }, [
    log('worker'),
    log('worker', { contains: 'err' }),
    log('worker', { lines: 1, minutes: 60 }),
    log('terminal'),
    log('nobody'),
  ])
  t.match(answers, [
    /^\d{4}-\S+ out\n\d{4}-\S+ err$/,
    /^\(searched: 2 lines\)\n\d{4}-\S+ err$/,
    /^\d{4}-\S+ err$/,
    /^\d{4}-\S+ hello$/,
    'Error: There is no such container.',
  ])

  await podman('rm', '--force', '--time', '1', 'db', 'worker', 'terminal', 'looping')
  t.equal((await lookAt([all])).good['containers'], true)
})
