import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Owner } from '../helpers/owner.ts'
import { deploymentParts, lacks, onPath } from '../runner/system-parts.ts'

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
const LIMIT_MS = 480_000

/** Path of a control group of our own: what systemd makes of it must not be found by that of this machine. */
function controlGroup() {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
  const mounted = /^\S+ (\S+) cgroup2 /m.exec(mounts)?.[1] ?? '/sys/fs/cgroup'
  const [, present = '/'] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
  return join(mounted, present, `gatehouse-test-${process.pid}`)
}

/** Why systemd can't be started here; false when it can be tried. */
export function noSystemd() {
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
function read(file: string) {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
  return new Map(
    lines.map((line) => {
      const at = line.indexOf(':')
      return [line.slice(0, at), line.slice(at + 1).trim()] as const
    }),
  )
}

/**
 * Has a systemd of its own run `run.sh` of a folder, which is `/mnt` there, on a copy of `root`.
 * Gives the script's lines by name; none when systemd does not start.
 */
export function runInSystemd(t: Owner, folder: string, root = '/') {
  const boot = ['bash', join(import.meta.dirname, 'boot-systemd.sh'), folder, root]
  const group = controlGroup()
  t.teardown(() => spawnSync('find', [group, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';']))
  const enter = ['-c', 'mkdir "$0" && echo $$ >"$0/cgroup.procs" && exec "$@"', group]
  const apart = ['unshare', ...UNSHARE, '--propagation', 'private', ...boot]
  const { stderr } = spawnSync('sh', [...enter, ...apart], {
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
    encoding: 'utf8',
  })
  return { found: read(join(folder, 'out')), stderr }
}
