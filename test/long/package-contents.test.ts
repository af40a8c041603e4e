import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { parse } from 'yaml'
import { buildDeb } from '../../deploy/deb.ts'
import { stageImage } from '../../deploy/image.ts'
import { readManifest, ROOT } from '../../deploy/manifest.ts'
import { ARCHITECTURES, ownArchitecture } from '../../deploy/node-binary.ts'
import { packForNpm } from '../../deploy/npm.ts'
import { processesWith } from '../helpers/agents.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks, onPath } from '../runner/system-parts.ts'

// What the packages hold. test/long/packages.test.ts and its neighbours install them.

const { version } = readManifest()
/** The folders of the tarball, and what stands beside them. */
const PACKED = [
  'CHANGELOG.md',
  'LICENSE',
  'README.md',
  'commands',
  'db',
  'deploy',
  'docs',
  'gatehouse.js',
  'html',
  'kernel',
  'node_modules',
  'package.json',
  'routes',
  'server.js',
  'services',
  'sql',
]
const DEB_FILES = [
  '/etc/gatehouse/gatehouse.env',
  '/usr/bin/gatehouse',
  '/usr/lib/systemd/system/gatehouse-links.socket',
  '/usr/lib/systemd/system/gatehouse-ops.socket',
  '/usr/lib/systemd/system/gatehouse.service',
  '/usr/lib/systemd/system/gatehouse.socket',
  '/usr/lib/sysusers.d/gatehouse.conf',
  '/usr/lib/tmpfiles.d/gatehouse.conf',
  '/usr/share/bash-completion/completions/gatehouse',
  '/usr/share/doc/gatehouse/NEWS.md.gz',
  '/usr/share/doc/gatehouse/changelog.gz',
  '/usr/share/doc/gatehouse/copyright',
  '/usr/share/doc/gatehouse/examples/Caddyfile',
  '/usr/share/doc/gatehouse/examples/cluster/etcd.env',
  '/usr/share/doc/gatehouse/examples/cluster/haproxy.cfg',
  '/usr/share/doc/gatehouse/examples/cluster/patroni.yml',
  '/usr/share/doc/gatehouse/examples/cluster/pgbouncer.ini',
  '/usr/share/doc/gatehouse/examples/cluster/sequences.sql',
  '/usr/share/doc/gatehouse/examples/gatehouse.env',
  '/usr/share/doc/gatehouse/examples/monitoring/gatehouse.dashboard.json',
  '/usr/share/doc/gatehouse/examples/monitoring/gatehouse.rules.yml',
  '/usr/share/doc/gatehouse/examples/nginx-two-instances.conf',
  '/usr/share/doc/gatehouse/examples/nginx.conf',
  '/usr/share/doc/gatehouse/examples/ops-host-access.conf',
  '/usr/share/doc/gatehouse/third-party-notices.gz',
  '/usr/share/fish/vendor_completions.d/gatehouse.fish',
  '/usr/share/lintian/overrides/gatehouse',
  '/usr/share/man/man1/gatehouse.1.gz',
  '/usr/share/man/man5/gatehouse.conf.5.gz',
  '/usr/share/zsh/vendor-completions/_gatehouse',
]

const skip = onPath('dpkg-deb') === undefined && 'missing: dpkg-deb'
await t.test('the Debian package', { skip }, async (t) => {
  const folder = await temporaryFolder(t, 'deb')
  const executable = join(folder, 'gatehouse')
  writeFileSync(executable, '#!/bin/sh\necho 1\n')
  const deb = buildDeb(executable, folder, 'arm64')
  const ask = (...args: string[]) => execFileSync('dpkg-deb', args, { encoding: 'utf8' })
  const begin = `Package: gatehouse\nVersion: ${version}\nArchitecture: arm64\n`
  t.match(ask('--field', deb), begin)
  t.match(ask('--field', deb, 'Depends'), /\blibatomic1, libc6 .*\bsystemd\b/)
  const entries = ask('--contents', deb).trim().split('\n')
  const files = entries.filter((line) => line.startsWith('-'))
  t.same(
    files.map((line) => line.split(' ./').at(-1)).sort(),
    DEB_FILES.map((path) => path.slice(1)),
  )
  t.ok(
    entries.every((line) => line.includes(' root/root ')),
    'all is root’s',
  )
  const content = join(folder, 'content')
  ask('--raw-extract', deb, content)
  t.equal(
    readFileSync(join(content, 'DEBIAN/conffiles'), 'utf8'),
    '/etc/gatehouse/gatehouse.env\n',
  )
  const unit = readFileSync(join(content, 'usr/lib/systemd/system/gatehouse.service'), 'utf8')
  t.match(unit, '\nExecStart=/usr/bin/gatehouse serve\n')
  t.notMatch(unit, '/usr/local')

  process.env['SOURCE_DATE_EPOCH'] = '1000000000'
  t.teardown(() => delete process.env['SOURCE_DATE_EPOCH'])
  t.match(
    ask('--contents', buildDeb(executable, folder, 'arm64')),
    ' 2001-09-09 01:46 ./usr/bin/gatehouse',
  )
  process.env['SOURCE_DATE_EPOCH'] = 'today'
  t.throws(() => buildDeb(executable, folder, 'arm64'), {
    message: /expected seconds since 1970$/,
  })
})

await t.test(
  'the maintainer scripts are plain sh without a flaw',
  { skip: lacks(deploymentParts.shellcheck) },
  async (t) => {
    const scripts = ['postinst', 'prerm', 'postrm'].map((name) => join(ROOT, 'deploy/deb', name))
    const { status, stdout } = spawnSync('shellcheck', ['--shell=sh', ...scripts], {
      encoding: 'utf8',
    })
    t.same({ status, stdout }, { status: 0, stdout: '' })
  },
)

await t.test('the package of npm', async (t) => {
  const folder = await temporaryFolder(t, 'npm')
  const tarball = packForNpm(folder)
  t.equal(tarball, join(folder, `gatehouse-${version}.tgz`))
  execFileSync('tar', ['-xzf', tarball, '-C', folder])
  const names = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n')
  const inside = names.map((name) => name.replace(/^package\//, ''))
  t.same([...new Set(inside.map((name) => name.replace(/\/.*/, '')))].sort(), PACKED)
  t.same(
    inside.filter((name) => name.endsWith('.ts')),
    [],
  )
  for (const name of [
    'docs/hooks.md',
    'deploy/Caddyfile',
    'sql/server.sql',
    'html/assets/app.css',
  ])
    t.ok(inside.includes(name), `what the program reads: ${name}`)
  const manifest = JSON.parse(readFileSync(join(folder, 'package/package.json'), 'utf8'))
  t.match(manifest, { name: 'gatehouse', version, bin: { gatehouse: 'gatehouse.js' } })
  for (const name of ['private', 'scripts', 'devDependencies']) t.notOk(name in manifest, name)
  const explorer = join(folder, 'package/node_modules/swagger-ui-dist/package.json')
  t.notMatch(readFileSync(explorer, 'utf8'), 'scarf', 'nothing reports an installation')
  const main = readFileSync(join(folder, 'package/server.js'), 'utf8')
  const source = readFileSync(join(ROOT, 'server.ts'), 'utf8')
  t.equal(main.split('\n').length, source.split('\n').length, 'lines are those of the sources')
})

await t.test(
  'what is made in a folder does not replace what somebody else has there',
  async (t) => {
    const folder = await temporaryFolder(t, 'mine')
    mkdirSync(join(folder, 'image'))
    for (const name of ['SHA256SUMS', 'image/picture.png']) writeFileSync(join(folder, name), '')
    const released = spawnSync(process.execPath, ['deploy/release.ts', folder], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    t.not(released.status, 0)
    t.match(released.stderr, `${folder} has image, which is no part of a release`)
    t.throws(() => stageImage('gatehouse', join(folder, 'image')), {
      message: /has other files and no image/,
    })
    t.same(globSync('**/*', { cwd: folder }).toSorted(), [
      'SHA256SUMS',
      'image',
      'image/picture.png',
    ])
  },
)

await t.test('a signal to a release ends its build, too, and nothing is left', async (t) => {
  const folder = join(await temporaryFolder(t, 'stopped'), 'release')
  const release = spawn(process.execPath, ['deploy/release.ts', folder], {
    cwd: ROOT,
    stdio: 'ignore',
  })
  t.teardown(() => release.kill('SIGKILL'))
  const ended = once(release, 'exit')
  await until(() => processesWith(folder).length > 2, 'a build and a program that it starts')
  release.kill('SIGTERM')
  t.same(await ended, [1, null])
  await until(() => processesWith(folder).length === 0, 'no process of the release')
  t.same(readdirSync(folder), [])
})

await t.test('a kind of machine that can’t be built for is refused', async (t) => {
  const folder = await temporaryFolder(t, 'kinds')
  const other = ARCHITECTURES.find((kind) => kind !== ownArchitecture()) ?? ''
  const cases = [
    [['--arch', 'sparc'], 'sparc is unknown, expected x64 or arm64'],
    [['--image', '--arch', other], `it needs --arch ${ownArchitecture()}`],
  ] as const
  for (const [flags, message] of cases) {
    const args = ['deploy/build.ts', ...flags, join(folder, 'gatehouse')]
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
    t.not(status, 0, message)
    t.match(stderr, message)
  }
  t.same(readdirSync(folder), [])
})

await t.test(
  'the container has no shell, is not root, and listens where compose maps',
  async (t) => {
    const read = (name: string) => readFileSync(join(ROOT, 'deploy', name), 'utf8')
    const file = read('Containerfile')
    t.match(file, /^FROM scratch$/m)
    t.match(file, /^USER 65532:65532$/m)
    const { services } = parse(read('compose.yaml'))
    const { ports, ...gatehouse } = services.gatehouse
    t.match(gatehouse, { read_only: true, cap_drop: ['ALL'], volumes: ['data:/data'] })
    for (const port of ports) {
      const [, inside] = /^127\.0\.0\.1:\d+:(\d+)$/.exec(port) ?? []
      t.match(file, `=0.0.0.0:${inside}`, port)
    }
  },
)
