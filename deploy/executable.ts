import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeFor, ownArchitecture, stripProgram, type Architecture } from './node-binary.ts'

/** What an executable is made of. */
interface ExecutableParts {
  /** Where `main` is, and the executable will be. */
  folder: string
  /**
   * File name of a CommonJS module. A bare name: it goes into the executable, and folders have
   * other names each time.
   */
  main: string
  /** The executable's file name. */
  name: string
  /** For which kind of machine. */
  architecture: Architecture
  /** Files by the name that the program asks for. */
  assets?: Readonly<Record<string, string>>
}

/**
 * Puts a module and its assets into a copy of Node; gives its path and what was done to the
 * Node.
 */
export function buildExecutable({
  folder,
  main,
  name,
  architecture,
  assets = {},
}: ExecutableParts) {
  const output = join(folder, name)
  const { copy, done } = copyNode(folder, architecture)
  const configuration = {
    main,
    mainFormat: 'commonjs',
    executable: copy,
    output,
    assets,
    disableExperimentalSEAWarning: true,
    // Another kind of machine can't read the code cache of this one; there each start compiles.
    useCodeCache: architecture === ownArchitecture(),
  }
  const file = join(folder, 'sea.json')
  writeFileSync(file, JSON.stringify(configuration))
  // The seed makes the code cache the same each time; another hash seed would make it useless.
  execFileSync(process.execPath, ['--random-seed=1', '--build-sea', file], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  chmodSync(output, 0o755)
  return { output, node: done }
}

/** The size of a file, for people. */
export function sizeOf(file: string): string {
  return `${(statSync(file).size / 1e6).toFixed(1)} MB`
}

/** A copy of Node, without its symbols where `strip` is installed: they are a fifth of it. */
function copyNode(folder: string, architecture: Architecture) {
  const copy = join(folder, 'node')
  copyFileSync(nodeFor(architecture), copy)
  const before = sizeOf(copy)
  const { error, status, stderr } = spawnSync(stripProgram(architecture), [copy], {
    encoding: 'utf8',
  })
  if (status === 0) return { copy, done: `${before}, ${sizeOf(copy)} without symbols` }
  return { copy, done: `${before}, symbols stay: ${error?.message ?? stderr.trim()}` }
}
