import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { runCliProcess } from '../helpers/cli.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { ROOT } from '../helpers/program.ts'
import { deploymentParts, lacks, onPath } from '../runner/system-parts.ts'

// The units in a real systemd, where this machine lets root make namespaces of every kind.

const UNSHARE = [
  '--mount',
  '--pid',
  '--fork',
  '--cgroup',
  '--ipc',
  '--uts',
  '--net',
  '--kill-child',
]
const LIMIT_MS = 240_000
/** Path of a control group of our own: what systemd makes of it must not be found by that of this machine. */
function controlGroup(): string {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
  const mounted = /^\S+ (\S+) cgroup2 /m.exec(mounts)?.[1] ?? '/sys/fs/cgroup'
  const [, present = '/'] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
  return join(mounted, present, `gatehouse-test-${process.pid}`)
}

/** Why systemd can't be started here; false when it can be tried. */
function obstacle(): string | false {
  if (process.getuid?.() !== 0) return 'only root can start a systemd of its own'
  const { systemd, python, bubblewrap } = deploymentParts
  const missing = lacks(systemd, python, bubblewrap)
  if (missing !== false) return missing
  if (onPath('unshare') === undefined) return 'missing: unshare'
  const { status } = spawnSync('unshare', [...UNSHARE, 'true'])
  if (status !== 0) return 'namespaces can not be made here'
  const group = spawnSync('sh', ['-c', 'mkdir "$0" && rmdir "$0"', controlGroup()])
  return group.status !== 0 && 'control groups can not be made here'
}

/** The lines `NAME: text` of the script that systemd ran. */
function read(file: string): ReadonlyMap<string, string> {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return new Map(
    lines.map((line) => {
      const at = line.indexOf(':')
      return [line.slice(0, at), line.slice(at + 1).trim()] as const
    }),
  )
}

t.test('the units in a real systemd', { skip: obstacle() }, async (t) => {
  const folder = await temporaryFolder(t, 'systemd')
  const built = await runCliProcess([join(folder, 'gatehouse')], {
    program: [process.execPath, 'deploy/build.ts'],
  })
  if (built.code !== 0) throw new Error(`the build failed: ${built.stderr}`)
  cpSync(join(ROOT, 'deploy'), join(folder, 'deploy'), { recursive: true })
  copyFileSync(join(import.meta.dirname, 'on-systemd.sh'), join(folder, 'run.sh'))
  const model = 'model-endpoint.py'
  copyFileSync(join(import.meta.dirname, model), join(folder, model))
  chmodSync(folder, 0o755)
  const boot = ['bash', join(import.meta.dirname, 'boot-systemd.sh'), folder]
  const group = controlGroup()
  t.teardown(() => spawnSync('find', [group, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']))
  const enter = ['-c', 'mkdir "$0" && echo $$ >"$0/cgroup.procs" && exec "$@"', group]
  const apart = ['unshare', ...UNSHARE, '--propagation', 'private', ...boot]
  const { stderr } = spawnSync('sh', [...enter, ...apart], {
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  })
  const found = read(join(folder, 'out'))
  if (found.get('booted') === undefined) {
    // Namespaces can be made, but not all that systemd needs.
    return void t.pass('', { skip: `systemd does not start here: ${stderr.slice(-300)}` })
  }
  const is = (name: string, expected: string | RegExp): void =>
    void (expected instanceof RegExp
      ? t.match(found.get(name), expected, name)
      : t.equal(found.get(name), expected, name))
  is('install', '0')
  is('start', '0 active gatehouse')
  is('status', 'hooks=http://127.0.0.1:8080 links=http://127.0.0.1:8081 ops=http://127.0.0.1:8082')
  is('answers', '200 200 200')
  is('rights', 'CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2')
  is('bounds', '3221225472 512')
  is('credential', /^payments signed enabled configured /)
  is('restart', '0')
  is('asked meanwhile', /^\d+ 200$/)
  is('killed', '200 1')
  is('wrong setting', /^1 [1-9]/)
  is('waited', '200')
  is('stopped', 'inactive refused refused')
  is('after a command of root', '0')
  is('stuck', '1 200')
  is('without the drop-in', /^warn {2}sandbox: commands of the inventory are off: bwrap: /)
  is('with the drop-in', 'ok    sandbox: bwrap works')
  const outcomes = 'ConnectionRefusedError111 ProcessLookupError3 FileNotFoundError2 OSError30'
  is('a command in the sandbox', outcomes)
})
