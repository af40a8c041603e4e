import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { t } from 'tap'
import { readManifest, ROOT } from '../../deploy/manifest.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { longParts, lacks } from '../runner/system-parts.ts'
import { noChroot } from './chroot.ts'
import { makeDebian } from './debian.ts'
import { noSystemd, runInSystemd } from './systemd.ts'

// The Debian package in a clean Debian, as systemd and shells have it. release.test.ts installs it without them.

const skip = lacks(longParts.packaging) || noChroot()
/** What the package depends on, and the shells that read its completions. */
const DEPENDENCIES = ['libatomic1', 'libstdc++6', 'systemd', 'fish', 'zsh']

async function buildPackage(t: Owner) {
  const folder = await temporaryFolder(t, 'deb')
  const args = ['deploy/build.ts', '--deb', join(folder, 'gatehouse')]
  execFileSync(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'pipe'] })
  const architecture = arch() === 'x64' ? 'amd64' : arch()
  return join(folder, `gatehouse_${readManifest().version}_${architecture}.deb`)
}

/** The same package with the next version. */
async function nextVersion(t: Owner, deb: string) {
  const folder = await temporaryFolder(t, 'next')
  const content = join(folder, 'content')
  execFileSync('dpkg-deb', ['--raw-extract', deb, content])
  const control = join(content, 'DEBIAN', 'control')
  const text = readFileSync(control, 'utf8').replace(/^(Version: .*)$/m, '$1+next')
  writeFileSync(control, text)
  const next = join(folder, 'next.deb')
  execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', content, next])
  return next
}

if (typeof skip === 'string') {
  await t.test('the Debian package', { skip }, async () => undefined)
} else {
  const deb = await buildPackage(t)
  const debian = join(await temporaryFolder(t, 'debian'), 'root')
  const noDebian = makeDebian(debian, DEPENDENCIES)

  await t.test('lintian finds no error and no warning', async (t) => {
    const { status, stdout } = spawnSync(
      'lintian',
      ['--allow-root', '--fail-on', 'error,warning', deb],
      { encoding: 'utf8' },
    )
    t.same({ status, stdout }, { status: 0, stdout: '' })
  })

  await t.test(
    'install, upgrade, remove and purge under systemd',
    { skip: noDebian ?? noSystemd() },
    async (t) => {
      const folder = await temporaryFolder(t, 'systemd')
      copyFileSync(deb, join(folder, 'first.deb'))
      copyFileSync(await nextVersion(t, deb), join(folder, 'second.deb'))
      copyFileSync(join(import.meta.dirname, 'on-package.sh'), join(folder, 'run.sh'))
      chmodSync(folder, 0o755)
      const { found, stderr } = runInSystemd(t, folder, debian)
      if (found.get('booted') === undefined) {
        return void t.pass('', { skip: `systemd does not start here: ${stderr.slice(-300)}` })
      }
      const log = readFileSync(join(folder, 'log'), 'utf8')
      const { version } = readManifest()
      t.match(
        Object.fromEntries(found),
        {
          install: '0 active gatehouse',
          answers: '200 200 200',
          enabled: 'enabled',
          credentials: '700 root',
          state: '700 gatehouse',
          user: '/usr/sbin/nologin',
          upgrade: '0 active restarted',
          statuses: '202',
          lost: '0 of some',
          settings: '# mine',
          version: `${version}+next`,
          'upgrade of a disabled one': '0 inactive disabled',
          remove: '0 inactive refused refused',
          kept: 'data credentials gatehouse.env',
          'install again': '0 200 the same events',
          purge: '0 inactive refused',
          left: '',
        },
        log,
      )
    },
  )

  await t.test('shells can read its completions', { skip: noDebian ?? false }, async (t) => {
    execFileSync('dpkg-deb', ['--extract', deb, debian])
    const inside = (...command: string[]) => {
      const { status, stderr } = spawnSync('chroot', [debian, ...command], {
        encoding: 'utf8',
        env: { PATH: '/usr/bin:/bin' },
      })
      return { status, stderr }
    }
    const completion = '/usr/share/fish/vendor_completions.d/gatehouse.fish'
    t.same(inside('fish', '--no-execute', completion), { status: 0, stderr: '' })
    const other = '/usr/share/zsh/vendor-completions/_gatehouse'
    t.same(inside('zsh', '-n', other), { status: 0, stderr: '' })
  })
}
