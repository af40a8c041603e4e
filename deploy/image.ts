import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

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
