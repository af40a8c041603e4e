import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The Debian of this machine, or that of GATEHOUSE_TEST_DEBIAN. */
function suite() {
  const [, release = 'stable'] =
    /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8')) ?? []
  return process.env['GATEHOUSE_TEST_DEBIAN'] ?? release
}

/**
 * A clean Debian in a folder: the essential packages and what these need. Gives the reason where it can't be made.
 */
export function makeDebian(folder: string, packages: readonly string[]) {
  return bootstrap(folder, packages, ['--variant=minbase'])
}

/** The same of another kind of machine, whose programs can't run here: packages are unpacked only. */
export function unpackDebian(folder: string, packages: readonly string[], architecture: string) {
  return bootstrap(folder, packages, ['--variant=extract', `--arch=${architecture}`])
}

function bootstrap(folder: string, packages: readonly string[], options: readonly string[]) {
  const args = [...options, '--mode=root', `--include=${packages.join(',')}`, suite(), folder]
  const { status, stderr } = spawnSync('mmdebstrap', args, { encoding: 'utf8' })
  return status === 0 ? undefined : `no Debian could be made: ${stderr.slice(-300)}`
}
