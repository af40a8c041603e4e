import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, delimiter, join } from 'node:path'
import { t } from 'tap'
import { readManifest, ROOT } from '../../deploy/manifest.ts'
import {
  ARCHITECTURES,
  DEBIAN_NAMES,
  ownArchitecture,
  type Architecture,
} from '../../deploy/node-binary.ts'
import { postgres } from '../helpers/backends.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { copySources } from '../mutation/run.ts'
import { emulator, lacks, longParts, onPath, type SystemPart } from '../runner/system-parts.ts'
import { liveOn, type Artefact } from './artefact-story.ts'
import { noChroot } from './chroot.ts'
import { makeDebian, unpackDebian } from './debian.ts'
import { openPodman } from './podman.ts'

// What `npm run release` makes, and the life of each file on a machine that had nothing of it. How the
// Debian package does under systemd is in packages.test.ts.

/** What the executable is linked with, by the packages of Debian that a small one lacks. */
const LIBRARIES = ['libatomic1', 'libstdc++6']
/** What dpkg keeps of a package until it is purged, with what systemd was told of its units; and its log. */
const OF_DPKG =
  /^\/(?:var\/lib\/dpkg\/info|var\/lib\/systemd\/deb-systemd-helper|etc\/systemd\/system\/.*wants)|^\/var\/log\/dpkg\.log$/
/** What the embedded database has in the data directory. */
const DATA_FILE = 'pg/PG_VERSION'
const ROOT_ENV = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }

const own = ownArchitecture()
const other = ARCHITECTURES.find((kind) => kind !== own) ?? own
const noPodman = lacks(longParts.podman)
const podman = noPodman === false ? await openPodman(t) : undefined
const env = { ...process.env, ...podman?.env }

const { version } = readManifest()
const folder = join(await temporaryFolder(t, 'release'), 'release')
const built = spawnSync(process.execPath, ['deploy/release.ts', folder], {
  cwd: ROOT,
  encoding: 'utf8',
  env,
})
const first = filesOf(folder, version, {
  x64: `gatehouse-${version}-linux-x64`,
  arm64: `gatehouse-${version}-linux-arm64`,
})
const BILL = `gatehouse-${version}.cdx.json`

await t.test('a release is built twice with the same bytes', async (t) => {
  t.match(built, { status: 0, stdout: `${folder}: built twice with the same bytes\n` })
  t.equal(built.stdout.includes('no image: podman is not installed'), podman === undefined)
  const debs = ARCHITECTURES.map((kind) => `gatehouse_${version}_${DEBIAN_NAMES[kind]}.deb`)
  const { executable, npm, image } = first
  const images = podman === undefined ? [] : [image]
  const files = [...Object.values(executable), npm, ...images].map((file) => basename(file))
  const names = ['SHA256SUMS', BILL, ...debs, ...files].toSorted()
  t.same(readdirSync(folder).toSorted(), names)
  const sums = spawnSync('sha256sum', ['--check', 'SHA256SUMS'], {
    cwd: folder,
    encoding: 'utf8',
  })
  t.equal(sums.status, 0, sums.stdout)
  t.equal(sums.stdout.trim().split('\n').length, names.length - 1)
  const bill = JSON.parse(readFileSync(join(folder, BILL), 'utf8'))
  t.match(bill, {
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'gatehouse', version } },
  })
  t.equal(bill.serialNumber, undefined)
  const inside = bill.components.map(({ name }: { name: string }) => name)
  for (const name of Object.keys(readManifest().dependencies)) t.ok(inside.includes(name), name)
  t.notOk(inside.includes('tap'), 'no tool of development')
})

const second = buildNext()
const debian = join(await temporaryFolder(t, 'debian'), 'root')
const noDebian = noRoot(longParts.packaging) ?? makeDebian(debian, [...LIBRARIES, 'systemd'])

await t.test('the tarball of npm', { skip: noDebian ?? false }, async (t) => {
  const place = join(debian, 'opt/gatehouse')
  const bin = '/opt/gatehouse/node_modules/.bin'
  await liveOn(t, {
    ...onRoot(debian, ['/usr/bin/env', `PATH=${bin}:/usr/bin:/bin`, `${bin}/gatehouse`]),
    install(isNext) {
      mkdirSync(place, { recursive: true })
      const { npm } = isNext ? second : first
      execFileSync('npm', ['install', '--prefix', place, npm], { stdio: 'pipe' })
      t.notOk(existsSync(join(place, 'node_modules/@scarf')), 'no reporter is installed')
      t.same(npx(place), isNext ? second.version : first.version, 'npx finds it')
    },
    remove() {
      rmSync(place, { recursive: true })
      rmSync(join(debian, 'root/.cache/gatehouse'), { recursive: true })
    },
    left: ['/root/.cache'],
  })
})

await t.test('the Debian package', { skip: noDebian ?? false }, async (t) => {
  const dpkg = (...args: string[]) =>
    execFileSync('chroot', [debian, 'dpkg', ...args], {
      encoding: 'utf8',
      env: ROOT_ENV,
      stdio: 'pipe',
    })
  await liveOn(t, {
    ...onRoot(debian, ['/usr/bin/gatehouse']),
    install(isNext) {
      const inside = join(debian, 'gatehouse.deb')
      copyFileSync(isNext ? second.deb : first.deb, inside)
      dpkg('--install', '/gatehouse.deb')
      rmSync(inside)
      t.equal(dpkg('--verify', 'gatehouse'), '')
    },
    remove: () => void dpkg('--remove', 'gatehouse'),
    left: ['/etc/gatehouse', '/etc/gatehouse/gatehouse.env'],
  })
  dpkg('--purge', 'gatehouse')
  t.same(
    pathsOf(debian).filter((path) => path.includes('gatehouse')),
    [],
    'what a purge leaves',
  )
})

await t.test(`the executable for ${own}`, { skip: noDebian ?? false }, (t) =>
  liveOn(t, executableOn(debian, own, [])),
)

const foreign = join(await temporaryFolder(t, 'foreign'), 'root')
const noForeign =
  noRoot(longParts.packaging, longParts.emulator) ??
  unpackDebian(foreign, LIBRARIES, DEBIAN_NAMES[other])
await t.test(`the executable for ${other}`, { skip: noForeign ?? false }, async (t) => {
  copyFileSync(emulator(other) ?? '', join(foreign, 'emulator'))
  // A package that is only unpacked has not made its folders yet.
  mkdirSync(join(foreign, 'usr/local/bin'), { recursive: true })
  const artefact = executableOn(foreign, other, ['/emulator'])
  // The embedded database is too slow for its own deadlines where each instruction is emulated.
  await liveOn(t, { ...artefact, env: await postgres.env(t), kept: undefined })
})

await t.test('the image', { skip: noPodman }, async (t) => {
  if (podman === undefined) return
  const command = podman.podman
  const limits = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges']
  const run = (...args: string[]) => command('run', '--rm', '--network=host', ...limits, ...args)
  const image = (isNext: boolean) => `localhost/gatehouse:${(isNext ? second : first).version}`
  const load = (isNext: boolean) => command('load', '--input', (isNext ? second : first).image)
  await load(false)
  const refused = await run(image(false), 'version').then(() => undefined, String)
  if (refused !== undefined) {
    // test/long/executable.test.ts runs the same file system in a chroot.
    return void t.pass('', { skip: `containers do not start here: ${refused.slice(-300)}` })
  }
  const noShell = await run('--entrypoint=/bin/sh', image(false)).then(() => undefined, String)
  t.match(noShell, /no such file|not found/)
  // Those that the builds have left, too.
  await command('rmi', '--all', '--force')

  const data = join(podman.folder, 'data')
  mkdirSync(data)
  execFileSync('chown', ['65532:65532', data])
  const settings = ['HOOKS_ADDR', 'LINKS_ADDR', 'OPS_ADDR', 'GATEHOUSE_DATA_DIR']
  const variables = settings.flatMap((name) => ['--env', name])
  const place = ['--name=server', '--network=host', `--volume=${data}:/data`]
  const store = Object.entries(podman.env).map(([name, value]) => `${name}=${value}`)
  const start = ['env', ...store, 'podman', 'run', ...limits, ...place, ...variables]
  await liveOn(t, {
    versions: [first.version, second.version],
    async install(isNext) {
      if (isNext) await command('rm', 'server')
      await load(isNext)
    },
    program: (isNext) => [...start, image(isNext)],
    data: '/data',
    kept: join(data, DATA_FILE),
    async whileRunning() {
      t.match(await command('top', 'server', 'user', 'comm'), /^65532 +\S+$/m)
    },
    async remove() {
      await command('rm', 'server')
      await command('rmi', image(false), image(true))
    },
    async traces() {
      const containers = await command('ps', '--all', '--quiet')
      return `${containers}${await command('images', '--all', '--quiet')}`.split('\n')
    },
    left: [],
  })
})

/** Why no root directory can be made; undefined where it can. */
function noRoot(...parts: SystemPart[]) {
  const missing = lacks(...parts)
  return noChroot() ?? (missing === false ? undefined : missing)
}

/** What a program in a root directory is started by, and what is there. Each has data of its own. */
function onRoot(root: string, program: readonly string[]) {
  const data = '/var/lib/gatehouse'
  rmSync(join(root, data), { recursive: true, force: true })
  return {
    versions: [first.version, second.version] as const,
    program: () => [onPath('chroot') ?? 'chroot', root, ...program],
    data,
    kept: join(root, data, DATA_FILE),
    traces: () => pathsOf(root).filter((path) => !path.startsWith(data) && !OF_DPKG.test(path)),
  }
}

/** The executable, put into a root directory and started there by a program, if one is named. */
function executableOn(root: string, kind: Architecture, starter: readonly string[]): Artefact {
  const file = join(root, 'usr/local/bin/gatehouse')
  return {
    ...onRoot(root, [...starter, '/usr/local/bin/gatehouse']),
    install(isNext) {
      const { executable } = isNext ? second : first
      copyFileSync(executable[kind], file)
      chmodSync(file, 0o755)
    },
    remove: () => rmSync(file),
    left: [],
  }
}

/** All paths of a root directory, as a program in it names them. */
function pathsOf(root: string) {
  const found = execFileSync('find', [root, '-mindepth', '1', '-xdev', '-printf', '/%P\n'], {
    encoding: 'utf8',
    maxBuffer: 64e6,
  })
  return found.trim().split('\n')
}

/** What `npx gatehouse version` prints in a folder, by the Node of this machine, which may be an older one. */
function npx(place: string) {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const PATH = folders.filter((folder) => !folder.includes('node_modules')).join(delimiter)
  const options = { cwd: place, env: { ...process.env, PATH }, encoding: 'utf8' } as const
  return execFileSync('npx', ['gatehouse', 'version'], options).trim()
}

/** The files of a folder that a release or a build has filled. */
function filesOf(place: string, version: string, executable: Record<Architecture, string>) {
  const debian = DEBIAN_NAMES[own]
  return {
    version,
    executable: { x64: join(place, executable.x64), arm64: join(place, executable.arm64) },
    deb: join(place, `gatehouse_${version}_${debian}.deb`),
    npm: join(place, `gatehouse-${version}.tgz`),
    image: join(place, `gatehouse-${version}-oci-${debian}.tar`),
  }
}

/** The same sources under the next version number. */
function buildNext() {
  const sources = copySources()
  const file = join(sources, 'package.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  const next = version.replace(/\d+$/, (patch) => String(Number(patch) + 1))
  writeFileSync(file, JSON.stringify(Object.assign(manifest, { version: next })))
  const kinds = [own, other].flatMap((kind) => ['--arch', kind])
  const flags = ['--deb', '--npm', '--image', ...kinds]
  execFileSync(process.execPath, ['deploy/build.ts', ...flags], {
    cwd: sources,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const names = { x64: 'gatehouse-x64', arm64: 'gatehouse-arm64', [own]: 'gatehouse' }
  return filesOf(join(sources, 'dist'), next, names)
}
