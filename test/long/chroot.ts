import { stageImage } from '../../deploy/image.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { onPath } from '../runner/system-parts.ts'

/** What stands in the way of a chroot; undefined where there is nothing. */
export function noChroot() {
  if (process.getuid?.() !== 0) return 'chroot is for root only'
  return ['chroot', 'ldd'].every((program) => onPath(program) !== undefined)
    ? undefined
    : 'chroot and ldd are not both there'
}

/** The file system of our container as a root directory; gives its path and the program to start. */
export async function makeRoot(t: Owner, executable: string) {
  const root = await temporaryFolder(t, 'root')
  stageImage(executable, root)
  return { root, program: [onPath('chroot') ?? 'chroot', root, '/gatehouse'] }
}
