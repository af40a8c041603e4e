import { spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Something that npm does not bring and a test runs as a process. */
export type SystemPart = {
  name: string
  debianPackage: string
  /** Path of its program (PostgreSQL: the folder of its programs), undefined when missing. */
  find(): string | undefined
}

/** Debian's package of Chromium without windows, which takes half the processor time of `chromium` a page. */
const HEADLESS = 'chromium-headless-shell'

/** Path of Chromium, without windows where there is one; undefined when it is missing. */
export function chromiumProgram(): string | undefined {
  return onPath(HEADLESS) ?? onPath('chromium')
}

/** The parts that the suite needs. */
export const systemParts: readonly SystemPart[] = [
  { name: 'PostgreSQL (initdb, postgres)', debianPackage: 'postgresql', find: postgresPrograms },
  {
    name: 'Redis (redis-server)',
    debianPackage: 'redis-server',
    find: () => onPath('redis-server'),
  },
  { name: 'nginx', debianPackage: 'nginx', find: () => onPath('nginx') },
  { name: 'Chromium', debianPackage: HEADLESS, find: chromiumProgram },
]

/** The parts without which the tests that need them are skipped. */
export const deploymentParts = {
  python: { name: 'Python', debianPackage: 'python3', find: () => onPath('python3') },
  systemd: {
    name: 'systemd (systemd-analyze, systemd-notify)',
    debianPackage: 'systemd',
    find: () => onPath('systemd-analyze') && onPath('systemd-notify'),
  },
  shellcheck: {
    name: 'ShellCheck',
    debianPackage: 'shellcheck',
    find: () => onPath('shellcheck'),
  },
  bubblewrap: {
    name: 'bubblewrap (bwrap)',
    debianPackage: 'bubblewrap',
    find: () => onPath('bwrap'),
  },
  caddy: { name: 'Caddy', debianPackage: 'caddy', find: () => onPath('caddy') },
  extensions: {
    name: 'Chromium that takes extensions (chromium)',
    debianPackage: 'chromium',
    find: () => onPath('chromium'),
  },
  ping: { name: 'ping', debianPackage: 'iputils-ping', find: () => onPath('ping') },
  dnsmasq: { name: 'dnsmasq', debianPackage: 'dnsmasq-base', find: () => onPath('dnsmasq') },
  alertmanager: {
    name: 'Alertmanager',
    debianPackage: 'prometheus-alertmanager',
    find: () => onPath('prometheus-alertmanager'),
  },
  openssl: { name: 'OpenSSL', debianPackage: 'openssl', find: () => onPath('openssl') },
  journal: {
    name: 'journalctl and systemd-journal-remote',
    debianPackage: 'systemd systemd-journal-remote',
    find: () => onPath('journalctl') && journalWriter(),
  },
  prometheus: {
    name: 'Prometheus',
    debianPackage: 'prometheus',
    find: () => onPath('prometheus'),
  },
  pgbouncer: {
    name: 'PgBouncer',
    debianPackage: 'pgbouncer',
    find: () => onPath('pgbouncer'),
  },
  zsh: { name: 'zsh', debianPackage: 'zsh', find: () => onPath('zsh') },
} satisfies Readonly<Record<string, SystemPart>>

/** The same for what runs in the long suite alone. */
export const longParts = {
  patroni: {
    name: 'Patroni, etcd, HAProxy and iptables',
    debianPackage: 'patroni etcd-server haproxy iptables iproute2',
    find: () => onPath('patroni') && onPath('etcd') && onPath('haproxy') && onPath('iptables'),
  },
  packaging: {
    name: 'dpkg-deb, Lintian and mmdebstrap',
    debianPackage: 'dpkg lintian mmdebstrap',
    find: () => onPath('dpkg-deb') && onPath('lintian') && onPath('mmdebstrap'),
  },
  podman: {
    name: 'Podman, runc and BusyBox',
    debianPackage: 'podman runc busybox-static',
    find: () => onPath('podman') && onPath('runc') && onPath('busybox'),
  },
} satisfies Readonly<Record<string, SystemPart>>

/** For `skip`: why a test can't run without these parts; false when they are there. */
export function lacks(...parts: readonly SystemPart[]): string | false {
  const missing = parts.filter((part) => part.find() === undefined).map(({ name }) => name)
  return missing.length > 0 && `missing: ${missing.join(', ')}`
}

/**
 * Installs the parts that are missing where it may (root on Debian), else says in one line what to
 * install. Gives that line, or undefined when everything is there.
 */
export function ensureSystemParts(parts: readonly SystemPart[]): string | undefined {
  const missing = parts.filter((part) => part.find() === undefined)
  if (missing.length === 0) return undefined
  const packages = missing.map((part) => part.debianPackage)
  const names = missing.map((part) => part.name).join(', ')
  if (process.getuid?.() === 0 && onPath('apt-get') !== undefined) {
    process.stdout.write(`# installing ${packages.join(' ')}\n`)
    const failure = aptInstall(packages)
    if (failure !== undefined) return failure
    if (missing.every((part) => part.find() !== undefined)) return undefined
  }
  return `missing: ${names}; install the Debian packages: apt-get install ${packages.join(' ')}`
}

/** The folder with initdb and postgres: of the PATH, else the newest of Debian's. */
export function postgresPrograms(): string | undefined {
  const fromPath = onPath('initdb')
  // A link may stand alone on the PATH: the other programs are beside the file.
  const folders = fromPath === undefined ? [] : [join(realpathSync(fromPath), '..')]
  return [...folders, ...debianFolders()].find((folder) =>
    ['initdb', 'postgres'].every((program) => isProgram(join(folder, program))),
  )
}

/** The program that makes journals of texts: in systemd's own folder. */
export function journalWriter(): string | undefined {
  const places = ['/usr/lib/systemd', '/lib/systemd']
  return places.map((place) => join(place, 'systemd-journal-remote')).find(isProgram)
}

/** Path of a program on the PATH or in Debian's usual places. */
export function onPath(program: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const places = [...folders, '/usr/bin', '/usr/sbin'].map((folder) => join(folder, program))
  return places.find(isProgram)
}

function debianFolders(): readonly string[] {
  const root = '/usr/lib/postgresql'
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(root, version, 'bin'))
  } catch {
    return []
  }
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function aptInstall(packages: readonly string[]): string | undefined {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const steps = [['update'], ['install', '-y', '--no-install-recommends', ...packages]]
  for (const step of steps) {
    const { status, stdout, stderr } = spawnSync('apt-get', ['-q', ...step], {
      env,
      encoding: 'utf8',
    })
    if (status === 0) continue
    process.stdout.write(stdout + stderr)
    return `apt-get ${step.join(' ')} failed with status ${status}, expected 0: see its output above`
  }
  return undefined
}
