import { statfsSync } from 'node:fs'

/**
 * With less free space than this the embedded database takes no changes: a segment of the log (16 MiB)
 * that can't be made is a panic of PostgreSQL, and one statement may write some megabytes.
 */
export const RESERVE_BYTES = 32 * 2 ** 20

/** What the disk of a folder has free for this user, in bytes. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}
