import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, linkSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * Makes the file system of a container in `folder`: an executable as `/gatehouse`, the shared
 * libraries that it is linked with, and an empty `/data`. No shell, and nothing of a distribution.
 * Gives the folder.
 */
export function stageImage(executable: string, folder: string): string {
  rmSync(folder, { recursive: true, force: true })
  const linked = execFileSync('ldd', [executable], { encoding: 'utf8' })
  for (const [library] of linked.matchAll(/\/\S+/g)) {
    const place = join(folder, library)
    mkdirSync(dirname(place), { recursive: true })
    copyFileSync(library, place)
    chmodSync(place, 0o755)
  }
  mkdirSync(join(folder, 'data'))
  const inside = join(folder, 'gatehouse')
  // A second name takes no time; on another file system it has to be a copy.
  try {
    linkSync(executable, inside)
  } catch {
    cpSync(executable, inside)
  }
  return folder
}
