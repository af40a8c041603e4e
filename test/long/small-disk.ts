import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Owner } from '../helpers/owner.ts'
import { ROOT, recordFolder, recordProcess, runFolder } from '../helpers/program.ts'

/**
 * A disk of some megabytes. It is mounted in a namespace of its own, which ends with the process that
 * holds it, so that nothing stays mounted however a test ends.
 */
export type SmallDisk = {
  /** Its folder, for programs that run on it. */
  folder: string
  /** The same folder, for the test itself. */
  seen: string
  /** What a command that sees the disk begins with. */
  on: readonly string[]
  /** Another program's file takes what is left. */
  fill(): void
  /** That file goes again. */
  free(): void
}

const MOUNT =
  'mount -t tmpfs -o size="$1",mode=755 none "$2" && echo mounted && exec sleep infinity'

/** For `skip`: why there can be no such disk here; false when there can. */
export function lacksSmallDisks() {
  const able = spawnSync('unshare', ['--mount', 'true']).status === 0
  return !able && 'mounting a small disk takes root'
}

/** Mounts a disk that goes away with the test. */
export async function smallDisk(t: Owner, mebibytes: number): Promise<SmallDisk> {
  // Beside the run's folder, which PostgreSQL's own user may not enter.
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-disk-'))
  recordFolder(runFolder(), folder)
  const holder = spawn('unshare', ['--mount', 'sh', '-c', MOUNT, 'sh', `${mebibytes}m`, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { pid } = holder
  if (pid === undefined) throw new Error('unshare did not start')
  recordProcess(runFolder(), pid)
  const ended = once(holder, 'exit')
  t.teardown(async () => {
    holder.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  await Promise.race([
    once(holder.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('the disk was not mounted'))),
  ])
  const seen = `/proc/${pid}/root${folder}`
  const filler = join(seen, 'filler')
  return {
    folder,
    seen,
    on: ['nsenter', `--mount=/proc/${pid}/ns/mnt`, `--wd=${ROOT}`],
    fill() {
      const piece = Buffer.alloc(1 << 16)
      try {
        for (;;) appendFileSync(filler, piece)
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      }
    },
    free: () => rmSync(filler),
  }
}
