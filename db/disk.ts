import { closeSync, fsyncSync, openSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

/** Forces one file or directory to the disk. */
export function syncPath(target: string): void {
  const fd = openSync(target, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** Forces a directory and everything in it to the disk. */
export function syncTree(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const target = join(directory, entry.name)
    if (entry.isDirectory()) syncTree(target)
    else if (entry.isFile()) syncPath(target)
  }
  syncPath(directory)
}

/**
 * With less free space than this the embedded database takes no changes: a segment of the log (16
 * MiB) that can't be made is a panic of PostgreSQL, and one statement may write some megabytes.
 */
export const RESERVE_BYTES = 32 * 2 ** 20

/** What the disk of a folder has free for this user, in bytes. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
