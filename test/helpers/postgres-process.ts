import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { chownSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { recordProcess } from './orphans.ts'
import { runFolder } from './run-folder.ts'
import type { SmallDisk } from './small-disk.ts'
import { postgresPrograms } from './system-parts.ts'

/** Who runs the cluster: initdb and postgres refuse root. */
type Account = { uid?: number; gid?: number }

/** Creates the cluster's files in `folder`; the superuser is `gatehouse`, signing in by password. */
export function initializeCluster(folder: string, password: string, disk?: SmallDisk): void {
  const account = clusterAccount()
  const seen = disk?.seen ?? folder
  if (account.uid !== undefined) chownSync(seen, account.uid, account.gid ?? account.uid)
  const passwordFile = join(folder, 'password')
  writeFileSync(join(seen, 'password'), password, { mode: 0o644 })
  const options = ['--pgdata', join(folder, 'cluster'), '--username=gatehouse', '--encoding=UTF8']
  const access = ['--auth=scram-sha-256', `--pwfile=${passwordFile}`]
  // Only the set-up skips fsync: the server that the tests use runs with it.
  const locale = ['--locale=C.UTF-8', '--no-sync', '--no-instructions']
  const { file, args, as } = command('initdb', [...options, ...access, ...locale], disk?.on)
  const result = spawnSync(file, args, { ...as, cwd: folder, encoding: 'utf8' })
  if (result.status !== 0) throw new Error(`initdb failed, expected status 0: ${result.stderr}`)
}

/**
 * Starts the server on a port of 127.0.0.1 in the foreground, so that it is our child and its id is
 * known. Its log goes to the transcripts.
 */
export function startClusterProcess(
  folder: string,
  port: number,
  on?: readonly string[],
): ChildProcess {
  const settings = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=300',
    'fsync=on',
    'log_line_prefix=%m [%p] ',
  ]
  const options = ['-D', join(folder, 'cluster'), ...settings.flatMap((setting) => ['-c', setting])]
  const log = openSync(clusterLog(folder), 'a')
  // Detached: Ctrl-C in the terminal reaches the runner, which ends its cluster in order.
  const stdio: ['ignore', number, number] = ['ignore', log, log]
  const { file, args, as } = command('postgres', options, on)
  const child = spawn(file, args, { ...as, cwd: folder, stdio, detached: true })
  closeSync(log)
  if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
  return child
}

/** The end of the cluster's log, for an error message. */
export function clusterLogTail(folder: string): string {
  return readFileSync(clusterLog(folder), 'utf8').trim().split('\n').slice(-5).join(' | ')
}

function clusterLog(folder: string): string {
  return join(runFolder(), `${folder.split('/').at(-1)}.log`)
}

/** How to start a program of PostgreSQL: on a disk of its own, `on` changes the account, which takes root. */
function command(
  name: string,
  options: readonly string[],
  [enter, ...inside]: readonly string[] = [],
): { file: string; args: string[]; as: Account } {
  const account = clusterAccount()
  if (enter === undefined) return { file: program(name), args: [...options], as: account }
  const { uid, gid } = account
  const user = uid === undefined ? [] : [`--setuid=${uid}`, `--setgid=${gid}`]
  return { file: enter, args: [...inside, '--wd=/', ...user, program(name), ...options], as: {} }
}

function program(name: string): string {
  const folder = postgresPrograms()
  if (folder === undefined) {
    throw new Error('PostgreSQL is missing: install it, on Debian apt-get install postgresql')
  }
  return join(folder, name)
}

function clusterAccount(): Account {
  if (process.getuid?.() !== 0) return {}
  const entry = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === 'postgres')
  if (entry === undefined) return { uid: 65534, gid: 65534 }
  return { uid: Number(entry[2]), gid: Number(entry[3]) }
}
