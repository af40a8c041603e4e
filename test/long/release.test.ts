import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { arch } from 'node:os'
import { delimiter, join } from 'node:path'
import { t } from 'tap'
import { stageImage } from '../../deploy/image.ts'
import { readManifest, ROOT } from '../../deploy/manifest.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { longParts, lacks } from '../runner/system-parts.ts'
import { hasDocs } from './has-docs.ts'
import { openPodman } from './podman.ts'

// What `npm run release` makes, and that its packages for npm and containers run. The Debian
// package has a test of its own.

const { version } = readManifest()
const architecture = arch() === 'x64' ? 'amd64' : arch()
const EXECUTABLE = `gatehouse-${version}-linux-${arch()}`
const BILL = `gatehouse-${version}.cdx.json`
const FILES = [
  'SHA256SUMS',
  EXECUTABLE,
  BILL,
  `gatehouse-${version}.tgz`,
  `gatehouse_${version}_${architecture}.deb`,
]

const release = join(await temporaryFolder(t, 'release'), 'release')
const built = spawnSync(process.execPath, ['deploy/release.ts', release], {
  cwd: ROOT,
  encoding: 'utf8',
})

await t.test('a release is built twice with the same bytes', async (t) => {
  t.match(built, { status: 0, stdout: `${release}: built twice with the same bytes\n` })
  t.same(readdirSync(release).sort(), FILES.toSorted())
  const sums = spawnSync('sha256sum', ['--check', 'SHA256SUMS'], {
    cwd: release,
    encoding: 'utf8',
  })
  t.equal(sums.status, 0, sums.stdout)
  t.equal(sums.stdout.trim().split('\n').length, FILES.length - 1)
  const bill = JSON.parse(readFileSync(join(release, BILL), 'utf8'))
  t.match(bill, {
    bomFormat: 'CycloneDX',
    metadata: { component: { name: 'gatehouse', version } },
  })
  t.equal(bill.serialNumber, undefined)
  const names = bill.components.map(({ name }: { name: string }) => name)
  for (const name of Object.keys(readManifest().dependencies)) t.ok(names.includes(name), name)
  t.notOk(names.includes('tap'), 'no tool of development')
})

const otherNode = nodeOnPath()
await t.test(
  'npx runs the tarball in an empty folder',
  { skip: otherNode === undefined && 'missing: a Node of its own with npx' },
  async (t) => {
    const folder = await temporaryFolder(t, 'npx')
    const env = {
      PATH: `${otherNode}${delimiter}/usr/bin${delimiter}/bin`,
      HOME: folder,
      npm_config_cache: join(folder, 'cache'),
    }
    const tarball = join(release, `gatehouse-${version}.tgz`)
    const printed = spawnSync('npx', ['--yes', '--package', tarball, 'gatehouse', 'version'], {
      cwd: folder,
      env: { ...process.env, ...env },
      encoding: 'utf8',
    })
    t.match(printed, { status: 0, stdout: `${version}\n` })
    t.same(readdirSync(folder), ['cache'], 'nothing else is there')
    const [installed = ''] = readdirSync(join(folder, 'cache/_npx'))
    const modules = join(folder, 'cache/_npx', installed, 'node_modules')
    t.notOk(existsSync(join(modules, '@scarf')), 'no reporter is installed')
    // Not by npx, which passes on no SIGTERM: by what it has installed, with the Node that it brings.
    const bin = join(modules, '.bin')
    const server = await startServerProcess(t, {
      program: ['env', '-C', folder, join(bin, 'gatehouse')],
      env: {
        ...env,
        PATH: `${bin}${delimiter}${env.PATH}`,
        GATEHOUSE_DATA_DIR: join(folder, 'data'),
      },
    })
    for (const address of [server.hooks, server.links, server.ops]) {
      t.equal((await request(`${address}/healthz`)).status, 200)
      t.equal((await request(`${address}/api/docs/swagger-ui-bundle.js`)).status, 200)
    }
    t.equal((await request(`${server.hooks}/assets/htmx.js`)).status, 200)
    await hasDocs(t, server.hooks)
  },
)

await t.test(
  'the container is built and serves, as nobody and on a root that is read-only',
  { skip: lacks(longParts.podman) },
  async (t) => {
    const { folder, podman } = await openPodman(t)
    const context = join(folder, 'context')
    mkdirSync(join(context, 'dist'), { recursive: true })
    stageImage(join(release, EXECUTABLE), join(context, 'dist', 'image'))
    cpSync(join(ROOT, 'deploy'), join(context, 'deploy'), { recursive: true })
    const file = join(context, 'deploy', 'Containerfile')
    await podman('build', '--file', file, '--tag', 'gatehouse', context)
    const limits = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges']
    const run = (...args: readonly string[]) =>
      podman('run', ...limits, '--network', 'none', ...args)
    const refused = await run('--rm', 'gatehouse', 'version').then(() => undefined, String)
    if (refused !== undefined) {
      // test/long/executable.test.ts runs the same file system in a chroot.
      return void t.pass('', { skip: `containers do not start here: ${refused.slice(-300)}` })
    }
    t.equal(await run('--rm', 'gatehouse', 'version'), `${version}\n`)
    const noShell = await run('--rm', '--entrypoint', '/bin/sh', 'gatehouse').then(
      () => undefined,
      String,
    )
    t.match(noShell, /no such file|not found/)
    // From the host no port is reached where networks can't be made: a socket in the volume is.
    const data = join(folder, 'data')
    mkdirSync(data)
    execFileSync('chown', ['65532:65532', data])
    const sockets = ['hooks', 'links', 'ops'].flatMap((name) => [
      '--env',
      `${name.toUpperCase()}_ADDR=unix:/data/${name}.sock`,
    ])
    const volume = ['--volume', `${data}:/data`]
    await run('--detach', '--name', 'server', ...volume, ...sockets, 'gatehouse')
    await until(() => existsSync(join(data, 'ops.sock')), 'the sockets of the services')
    const health = ['--silent', '--unix-socket', join(data, 'hooks.sock')]
    t.match(spawnSync('curl', [...health, 'http://localhost/healthz'], { encoding: 'utf8' }), {
      status: 0,
      stdout: /ok/,
    })
    const top = await podman('top', 'server', 'user', 'comm')
    t.match(top, /^65532 +\S+$/m)
    await podman('stop', '--time', '15', 'server')
    t.equal((await podman('inspect', '--format', '{{.State.ExitCode}}', 'server')).trim(), '0')
  },
)

/** The folder of a Node that does not come from our packages; undefined where there is none. */
function nodeOnPath() {
  const folders = ['/usr/local/bin', '/usr/bin']
  return folders.find(
    (folder) => existsSync(join(folder, 'node')) && existsSync(join(folder, 'npx')),
  )
}
