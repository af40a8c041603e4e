import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { openFolder } from '../deploy/nginx.ts'
import { HOSTS } from './cluster-hosts.ts'
import { request } from '../helpers/http.ts'
import type { Owner } from '../helpers/owner.ts'
import { run } from '../helpers/postgres.ts'
import { ROOT, recordChild, runFolder } from '../helpers/program.ts'
import { isRunning } from '../helpers/process-figures.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'
import { onPath, postgresPrograms } from '../runner/system-parts.ts'
import { codeOf } from '../../kernel/log.ts'

/** What happens to a host. */
export type Fault = 'killed' | 'stopped' | 'cut off'

/** A host of the cluster: etcd, Patroni and its PostgreSQL, with an account of their own. */
export type Node = {
  name: string
  /** Its address: a database of it is `url(database)`. */
  host: string
  /** Breaks it; resolves with what mends it. */
  break(fault: Fault): () => void
}

/** Three hosts and an HAProxy, with the settings of `deploy/cluster`. */
export type PatroniCluster = {
  nodes: readonly Node[]
  /** A database through HAProxy, at the leader. */
  url: string
  /** The same at the hosts themselves, without HAProxy. */
  direct: string
  /** The host that is leader, and takes changes. */
  leader(): Promise<Node | undefined>
  /** Waits until all are there: a leader, a synchronous standby, and another one that streams. */
  healthy(): Promise<void>
}

const PATIENCE_MS = 180_000

/** Starts the cluster; it ends with the test. Takes a network of its own and accounts: see cluster.test.ts. */
export async function startCluster(t: Owner): Promise<PatroniCluster> {
  const folder = openFolder(t)
  const passwords = {
    'PASSWORD-OF-POSTGRES': secret('postgres-superuser'),
    'PASSWORD-OF-REPLICATOR': secret('postgres-replicator'),
  }
  const password = secret('postgres-gatehouse')
  const nodes = HOSTS.map((own) => startNode(t, folder, own, passwords))
  startHaproxy(t, folder)
  const admin = `postgres://postgres:${passwords['PASSWORD-OF-POSTGRES']}@127.0.0.1:5432/postgres`
  await until(async () => (await run(admin, 'select 1')).length === 1, 'a leader', PATIENCE_MS)
  await run(admin, `create role gatehouse login password '${password}'`)
  await run(admin, 'create database gatehouse owner gatehouse')
  const user = `postgres://gatehouse:${password}@`
  const cluster: PatroniCluster = {
    nodes,
    url: `${user}127.0.0.1:5432/gatehouse`,
    direct: `${user}${nodes.map(({ host }) => `${host}:5432`).join(',')}/gatehouse?target_session_attrs=read-write`,
    async leader() {
      const states = await Promise.all(nodes.map(stateOf))
      const at = states.findIndex((state) => state === 'leader')
      return nodes[at]
    },
    async healthy() {
      const whole = async () => {
        const states = await Promise.all(nodes.map(stateOf))
        return states.toSorted().join() === 'leader,replica,sync'
      }
      try {
        await until(whole, 'the cluster to be whole', PATIENCE_MS, 500)
      } catch (error) {
        const states = await Promise.all(nodes.map(stateOf))
        throw new Error(`${states.join()}: ${nodes.map(lastOf).join('\n')}`, { cause: error })
      }
    },
  }
  await cluster.healthy()
  return cluster
}

/** The end of its Patroni's log. */
function lastOf({ name }: Pick<Node, 'name'>) {
  const lines = readFileSync(join(runFolder(), `${name}-patroni.log`), 'utf8').split('\n')
  return lines.slice(-12).join('\n')
}

/** By Patroni's REST API, as HAProxy asks it. */
async function stateOf({ host }: Pick<Node, 'host'>) {
  const is = async (path: string) => {
    try {
      const { status } = await request(`http://${host}:8008/${path}`, { timeoutMs: 1_000 })
      return status === 200
    } catch {
      return false
    }
  }
  if (await is('primary')) return 'leader'
  if (await is('synchronous')) return 'sync'
  return (await is('replica')) ? 'replica' : 'away'
}

function startNode(
  t: Owner,
  folder: string,
  { name, host, uid }: (typeof HOSTS)[number],
  passwords: Record<string, string>,
): Node {
  const own = join(folder, name)
  mkdirSync(own)
  spawnSync('chown', [`${uid}`, own])
  /** The setting of the first host with the values of this one. */
  const settingOf = (file: string) => {
    const text = readFileSync(join(ROOT, 'deploy', 'cluster', file), 'utf8')
      .replace(/^name: .*$/m, `name: ${name}`)
      .replace(/^ETCD_NAME=.*$/m, `ETCD_NAME=${name}`)
      .replace(/^(.*(?:listen|LISTEN|connect_address|ADVERTISE).*)10\.0\.0\.21/gm, `$1${host}`)
      .replaceAll('10.0.0.', '127.0.0.')
      .replace('/var/lib/etcd/gatehouse', join(own, 'etcd'))
      .replace('/var/lib/postgresql/15/gatehouse', join(own, 'data'))
      .replace('/var/lib/postgresql/patroni.pgpass', join(own, 'pgpass'))
      .replace('/var/run/postgresql', own)
      .replace('/usr/lib/postgresql/15/bin', postgresPrograms() ?? '')
    return Object.entries(passwords).reduce((all, [word, one]) => all.replace(word, one), text)
  }
  const yml = join(own, 'patroni.yml')
  writeFileSync(yml, settingOf('patroni.yml'))
  chmodSync(yml, 0o644)
  const etcdEnv = Object.fromEntries(
    settingOf('etcd.env')
      .split('\n')
      .filter((line) => line.startsWith('ETCD_'))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )
  const begin = () => {
    startAs(own, uid, 'etcd', [], { ...etcdEnv, ETCD_UNSUPPORTED_ARCH: process.arch })
    startAs(own, uid, 'patroni', [yml], {})
  }
  begin()
  const signal = (word: NodeJS.Signals) => {
    for (const pid of processesOf(uid)) tell(pid, word)
  }
  t.teardown(() => signal('SIGKILL'))
  const rule = ['OUTPUT', '-m', 'owner', '--uid-owner', `${uid}`, '-j', 'DROP']
  return {
    name,
    host,
    break(fault) {
      if (fault === 'cut off') {
        // Nothing that its processes send arrives, and so no connection is made or goes on.
        iptables('-A', rule)
        return () => iptables('-D', rule)
      }
      if (fault === 'stopped') {
        signal('SIGSTOP')
        return () => signal('SIGCONT')
      }
      signal('SIGKILL')
      return begin
    },
  }
}

function iptables(what: '-A' | '-D', rule: readonly string[]) {
  const { status, stderr } = spawnSync('iptables', [what, ...rule], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`iptables: ${stderr}`)
}

/** The processes of an account: Patroni's PostgreSQL is no child of it. */
function processesOf(uid: number) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && ownerOf(name) === uid)
    .map(Number)
    .filter(isRunning)
}

/** The account of a process; undefined if it has ended meanwhile. */
function ownerOf(pid: string) {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid
}

/** Sends a signal to a process that may have ended meanwhile: the end of another one ends it. */
function tell(pid: number, word: NodeJS.Signals) {
  try {
    process.kill(pid, word)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}

function startHaproxy(t: Owner, folder: string) {
  const file = join(folder, 'haproxy.cfg')
  const text = readFileSync(join(ROOT, 'deploy', 'cluster', 'haproxy.cfg'), 'utf8')
  writeFileSync(file, text.replaceAll('10.0.0.', '127.0.0.'))
  const child = startAs(folder, 65_534, 'haproxy', ['-db', '-f', file], {})
  t.teardown(() => child.kill('SIGKILL'))
}

function startAs(
  folder: string,
  uid: number,
  name: string,
  args: readonly string[],
  env: Record<string, string>,
): ChildProcess {
  const program = onPath(name)
  if (program === undefined) throw new Error(`${name} is missing`)
  const log = openSync(join(runFolder(), `${folder.split('/').at(-1)}-${name}.log`), 'a')
  const child = spawn(program, args, {
    uid,
    gid: uid,
    cwd: folder,
    stdio: ['ignore', log, log],
    env: { PATH: process.env['PATH'], HOME: folder, LANG: 'C.UTF-8', ...env },
  })
  closeSync(log)
  recordChild(child)
  return child
}
