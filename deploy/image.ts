import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { readManifest, sourceDate } from './manifest.ts'
import { DEBIAN_NAMES, ownArchitecture } from './node-binary.ts'

/**
 * Makes the file system of a container in `folder`: an executable as `/gatehouse`, the shared
 * libraries that it is linked with, and an empty `/data`. No shell, and nothing of a distribution.
 * Gives the folder.
 */
export function stageImage(executable: string, folder: string): string {
  const inside = join(folder, 'gatehouse')
  // The folder is replaced: pictures that somebody has in one of this name must not be lost.
  const isFilled = existsSync(folder) && readdirSync(folder).length > 0
  if (isFilled && !existsSync(inside)) {
    throw new Error(`${folder} has other files and no image: name an executable in another folder`)
  }
  const linked = execFileSync('ldd', [executable], { encoding: 'utf8' })
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  // First: by it the next build knows a folder that this one did not finish. A second name takes no
  // time; on another file system it has to be a copy.
  try {
    linkSync(executable, inside)
  } catch {
    cpSync(executable, inside)
  }
  for (const [library] of linked.matchAll(/\/\S+/g)) {
    const place = join(folder, library)
    mkdirSync(dirname(place), { recursive: true })
    copyFileSync(library, place)
    chmodSync(place, 0o755)
  }
  mkdirSync(join(folder, 'data'))
  return folder
}

/**
 * Builds the image with Podman from `image` in `folder`, and puts it there as an OCI archive, too.
 * The same sources give the same bytes. Gives the archive's path, undefined without Podman.
 */
export function packImage(folder: string): string | undefined {
  if (spawnSync('podman', ['--version']).status !== 0) return undefined
  const { version } = readManifest()
  const name = `localhost/gatehouse:${version}`
  const date = sourceDate()
  const archive = join(folder, `gatehouse-${version}-oci-${DEBIAN_NAMES[ownArchitecture()]}.tar`)
  const layout = mkdtempSync(join(folder, '.image-'))
  const run = (program: string, ...args: readonly string[]) =>
    execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  try {
    const file = join(import.meta.dirname, 'Containerfile')
    const same = [`--timestamp=${date}`, '--layers=false']
    run('podman', 'build', ...same, '--file', file, '--tag', name, folder)
    run('podman', 'save', '--format', 'oci-dir', '--output', layout, name)
    const owner = ['--numeric-owner', '--owner=0', '--group=0', '--mode=u=rwX,go=rX']
    const entries = ['-C', layout, '--sort=name', `--mtime=@${date}`, ...owner]
    run('tar', ...entries, '-cf', archive, 'oci-layout', 'index.json', 'blobs')
    return archive
  } finally {
    rmSync(layout, { recursive: true })
  }
}
