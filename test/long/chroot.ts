import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, linkSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { onPath } from '../runner/system-parts.ts'

/** What stands in the way of a chroot; undefined where there is nothing. */
export function noChroot(): string | undefined {
  if (process.getuid?.() !== 0) return 'chroot is for root only'
  return ['chroot', 'ldd'].every((program) => onPath(program) !== undefined)
    ? undefined
    : 'chroot and ldd are not both there'
}

/**
 * A root directory with an executable, as `/gatehouse`, the shared libraries that it is linked with, and
 * an empty `/data`: no Node, no shell, no `/proc`, no `/dev`. Gives its path and the program to start.
 */
export async function makeRoot(
  t: Owner,
  executable: string,
): Promise<{ readonly root: string; readonly program: readonly string[] }> {
  const root = await temporaryFolder(t, 'root')
  const { status, stdout, stderr } = spawnSync(onPath('ldd') ?? 'ldd', [executable], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`ldd ${executable}: ${stderr}`)
  for (const [library] of stdout.matchAll(/\/\S+/g)) {
    const place = join(root, library)
    mkdirSync(dirname(place), { recursive: true })
    copyFileSync(library, place)
    chmodSync(place, 0o755)
  }
  const inside = join(root, 'gatehouse')
  // A second name takes no time; on another file system it has to be a copy.
  try {
    linkSync(executable, inside)
  } catch {
    cpSync(executable, inside)
  }
  mkdirSync(join(root, 'data'))
  return { root, program: [onPath('chroot') ?? 'chroot', root, '/gatehouse'] }
}
