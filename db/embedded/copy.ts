import { constants } from 'node:fs'
import { cp, mkdir, readdir, rm, stat, statfs } from 'node:fs/promises'
import path from 'node:path'
import { codeOf } from '../../kernel/log.ts'
import type { Database } from '../client.ts'
import { clusterFolder, copyFolder } from './places.ts'

/**
 * Copies the embedded database that `db` is open on, file by file, to `copyFolder()`. All other
 * statements wait meanwhile, which takes as long as the disk takes: reading it row by row would hold
 * them up for many times that. Whoever opens the copy finds all that is committed.
 *
 * @returns the milliseconds that statements had to wait.
 */
export async function copyCluster(db: Database, directory: string): Promise<number> {
  const from = clusterFolder(directory)
  const copy = copyFolder(directory)
  await refuseWithoutRoom(directory, from)
  try {
    await mkdir(copy, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) === 'EEXIST') {
      throw new Error('another backup is being made', { cause: error })
    }
    throw error
  }
  try {
    return await db.transaction(async (tx) => {
      // A transaction has the one session to itself, so that nothing is written now. What is not yet in
      // the tables' files is in the log, which PostgreSQL reads when the copy is opened.
      await tx.script('select')
      const began = performance.now()
      await cp(from, clusterFolder(copy), { recursive: true, mode: constants.COPYFILE_FICLONE })
      return performance.now() - began
    })
  } catch (error) {
    await removeCopy(directory)
    throw error
  }
}

/** Removes the copy. */
export async function removeCopy(directory: string): Promise<void> {
  await rm(copyFolder(directory), { recursive: true, force: true, maxRetries: 3 })
}

/** A full disk would stop the server. */
async function refuseWithoutRoom(directory: string, cluster: string): Promise<void> {
  const files = await readdir(cluster, { recursive: true, withFileTypes: true })
  const sizes = await Promise.all(
    files.map(async (file) =>
      file.isFile() ? (await stat(path.join(file.parentPath, file.name))).size : 0,
    ),
  )
  const needed = sizes.reduce((sum, size) => sum + size, 0)
  const { bavail, bsize } = await statfs(directory)
  const free = bavail * bsize
  if (free > 1.1 * needed) return
  const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`
  throw new Error(
    `a backup beside the server needs ${mib(1.1 * needed)} for a copy in ${directory}, where ${mib(free)} are free`,
  )
}
