import { spawnSync } from 'node:child_process'
import { accessSync, constants, readdirSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Something that npm does not bring and a test runs as a process. */
export type SystemPart = {
  name: string
  /** Names of Debian's packages that bring it. */
  debianPackages: readonly string[]
  /** Path of its program (PostgreSQL: the folder of its programs), undefined when missing. */
  find(): string | undefined
}

/** Debian's package of Chromium without windows, which takes half the processor time of `chromium` a page. */
const HEADLESS = 'chromium-headless-shell'

/** Path of Chromium, without windows where there is one; undefined when it is missing. */
export function chromiumProgram() {
  return onPath(HEADLESS) ?? onPath('chromium')
}

/** A part that is one program; its package has the same name unless another one is named. */
function program(name: string, programName: string, debianPackage = programName): SystemPart {
  return { name, debianPackages: [debianPackage], find: () => onPath(programName) }
}

/** A part that is there when each of these programs is. */
function programs(
  name: string,
  programNames: readonly string[],
  debianPackages: readonly string[],
) {
  function find() {
    const paths = programNames.map(onPath)
    return paths.includes(undefined) ? undefined : paths[0]
  }
  return { name, debianPackages, find }
}

/** The parts that the suite needs. */
export const systemParts: readonly SystemPart[] = [
  {
    name: 'PostgreSQL (initdb, postgres)',
    debianPackages: ['postgresql'],
    find: postgresPrograms,
  },
  program('Redis (redis-server)', 'redis-server'),
  program('nginx', 'nginx'),
  { name: 'Chromium', debianPackages: [HEADLESS], find: chromiumProgram },
]

/** The parts without which the tests that need them are skipped. */
export const deploymentParts = {
  python: program('Python', 'python3'),
  systemd: programs('systemd', ['systemd-analyze', 'systemd-notify'], ['systemd']),
  shellcheck: program('ShellCheck', 'shellcheck'),
  bubblewrap: program('bubblewrap (bwrap)', 'bwrap', 'bubblewrap'),
  caddy: program('Caddy', 'caddy'),
  extensions: program('Chromium that takes extensions (chromium)', 'chromium'),
  ping: program('ping', 'ping', 'iputils-ping'),
  dnsmasq: program('dnsmasq', 'dnsmasq', 'dnsmasq-base'),
  openssl: program('OpenSSL', 'openssl'),
  journal: {
    name: 'journalctl and systemd-journal-remote',
    debianPackages: ['systemd', 'systemd-journal-remote'],
    find: () => onPath('journalctl') && journalWriter(),
  },
  prometheus: program('Prometheus', 'prometheus'),
  pgbouncer: program('PgBouncer', 'pgbouncer'),
  zsh: program('zsh', 'zsh'),
} satisfies Record<string, SystemPart>

/** The same for what runs in the long suite alone. */
export const longParts = {
  firefox: {
    name: 'Firefox',
    debianPackages: ['firefox-esr'],
    find: () => onPath('firefox-esr') ?? onPath('firefox'),
  },
  alertmanager: program('Alertmanager', 'prometheus-alertmanager'),
  patroni: programs(
    'Patroni, etcd, HAProxy and iptables',
    ['patroni', 'etcd', 'haproxy', 'iptables'],
    ['patroni', 'etcd-server', 'haproxy', 'iptables', 'iproute2'],
  ),
  packaging: programs(
    'dpkg-deb, Lintian and mmdebstrap',
    ['dpkg-deb', 'lintian', 'mmdebstrap'],
    ['dpkg', 'lintian', 'mmdebstrap'],
  ),
  emulator: {
    name: 'QEMU for programs of other machines',
    debianPackages: ['qemu-user-static'],
    find: () => emulator('x64') && emulator('arm64'),
  },
  podman: programs(
    'Podman, runc and BusyBox',
    ['podman', 'runc', 'busybox'],
    ['podman', 'runc', 'busybox-static'],
  ),
} satisfies Record<string, SystemPart>

/** For `skip`: why a test can't run without these parts; false when they are there. */
export function lacks(...parts: SystemPart[]) {
  const missing = parts.filter((part) => part.find() === undefined).map(({ name }) => name)
  return missing.length > 0 && `missing: ${missing.join(', ')}`
}

/** Where parts are installed: whether we are root there, and the path of its apt-get, if it has one. */
export type Host = { isRoot: boolean; aptGet: string | undefined }

/**
 * Installs the parts that are missing where it may (root on Debian), one package at a time: one that apt does not
 * have keeps no other away. Gives a line that says what is still missing, or undefined when everything is there.
 */
export function ensureSystemParts(
  parts: readonly SystemPart[],
  host: Host = { isRoot: process.getuid?.() === 0, aptGet: onPath('apt-get') },
) {
  const missing = parts.filter((part) => part.find() === undefined)
  if (missing.length === 0) return undefined
  const { isRoot, aptGet } = host
  const failures = isRoot && aptGet !== undefined ? installAll(aptGet, missing) : []
  const still = missing.filter((part) => part.find() === undefined)
  if (still.length === 0) return undefined
  const names = still.map(({ name }) => name).join(', ')
  const packages = still.flatMap(({ debianPackages }) => debianPackages).join(' ')
  const advice = `missing: ${names}; install the Debian packages: apt-get install ${packages}`
  return [advice, ...failures].join('; ')
}

/** Gives a line for each step that failed. */
function installAll(aptGet: string, parts: readonly SystemPart[]) {
  const packages = new Set(parts.flatMap(({ debianPackages }) => debianPackages))
  // Old lists may still do: when they can't be renewed, the packages are tried all the same.
  const steps = [
    ['update'],
    ...[...packages].map((name) => ['install', '-y', '--no-install-recommends', name]),
  ]
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return steps.flatMap((step) => {
    process.stdout.write(`# apt-get ${step.join(' ')}\n`)
    const run = spawnSync(aptGet, ['-q', ...step], { env, encoding: 'utf8' })
    if (run.status === 0) return []
    const reason = run.error?.message ?? /^E: .+$/m.exec(run.stderr)?.[0] ?? `status ${run.status}`
    return [`apt-get ${step.join(' ')} failed: ${reason}`]
  })
}

/** The folder with initdb and postgres: of the PATH, else the newest of Debian's. */
export function postgresPrograms() {
  const fromPath = onPath('initdb')
  // A link may stand alone on the PATH: the other programs are beside the file.
  const folders = fromPath === undefined ? [] : [join(realpathSync(fromPath), '..')]
  return [...folders, ...debianFolders()].find((folder) =>
    ['initdb', 'postgres'].every((program) => isProgram(join(folder, program))),
  )
}

/** The program that makes journals of texts: in systemd's own folder. */
export function journalWriter() {
  const places = ['/usr/lib/systemd', '/lib/systemd']
  return places.map((place) => join(place, 'systemd-journal-remote')).find(isProgram)
}

/** The program that runs those of another kind of machine: it needs no library, so it also runs in a chroot. */
export function emulator(architecture: 'x64' | 'arm64') {
  return onPath(`qemu-${architecture === 'x64' ? 'x86_64' : 'aarch64'}-static`)
}

/** Path of a program on the PATH or in Debian's usual places. */
export function onPath(program: string) {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const places = [...folders, '/usr/bin', '/usr/sbin'].map((folder) => join(folder, program))
  return places.find(isProgram)
}

function debianFolders() {
  const root = '/usr/lib/postgresql'
  try {
    const versions = readdirSync(root).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => join(root, version, 'bin'))
  } catch {
    return []
  }
}

function isProgram(path: string) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
