import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './manifest.ts'

/** The kinds of machines that Gatehouse is built for, as Node names them. */
export const ARCHITECTURES = ['x64', 'arm64'] as const
export type Architecture = (typeof ARCHITECTURES)[number]

/** What other tools call them: Debian and containers, and the programs of binutils. */
export const DEBIAN_NAMES = { x64: 'amd64', arm64: 'arm64' } as const
const GNU_NAMES = { x64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const

/** The kind of this machine. */
export function ownArchitecture(): Architecture {
  return asArchitecture(arch())
}

export function asArchitecture(name: string): Architecture {
  const known = ARCHITECTURES.find((architecture) => architecture === name)
  if (known === undefined) throw new Error(`${name} is unknown, expected x64 or arm64`)
  return known
}

/** The path of Node for a kind of machine. That of another kind is fetched once into `.cache`. */
export function nodeFor(architecture: Architecture): string {
  if (architecture === ownArchitecture()) return process.execPath
  const name = `node-linux-${architecture}`
  const { version, integrity } = locked(name)
  // Node wants the same version in the executable as the one that builds it.
  if (`v${version}` !== process.version) {
    throw new Error(`${name} is ${version}, expected the version of this Node, ${process.version}`)
  }
  const folder = join(ROOT, '.cache', `${name}-${version}`)
  if (!existsSync(folder)) fetchPackage(`${name}@${version}`, integrity, folder)
  return join(folder, 'package', 'bin', 'node')
}

/** The program that removes the symbols of an executable for a kind of machine. */
export function stripProgram(architecture: Architecture): string {
  return architecture === ownArchitecture() ? 'strip' : `${GNU_NAMES[architecture]}-strip`
}

/** A package as the lock file has it: npm installs it on its own kind of machine only. */
function locked(name: string): { version: string; integrity: string } {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  return packages[`node_modules/${name}`]
}

/** Unpacks a package of npm's registry, with the checksum of the lock file, into `folder`. */
function fetchPackage(name: string, integrity: string, folder: string): void {
  const cache = join(ROOT, '.cache')
  mkdirSync(cache, { recursive: true })
  // Beside its place, and put there when it is whole: two builds may do this at once.
  const work = mkdtempSync(join(cache, 'fetching-'))
  try {
    const args = ['pack', '--silent', '--pack-destination', work, name]
    const file = join(work, execFileSync('npm', args, { encoding: 'utf8' }).trim())
    const sum = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
    if (sum !== integrity) throw new Error(`${name} is ${sum}, expected ${integrity}`)
    execFileSync('tar', ['-xzf', file, '-C', work])
    rmSync(file)
    if (!existsSync(folder)) renameSync(work, folder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
