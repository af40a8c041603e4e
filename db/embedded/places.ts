import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** Where the cluster of a data directory is. */
export function clusterFolder(directory: string): string {
  return join(directory, 'pg')
}

/** Where the copy of a data directory's database is, as a data directory of its own. */
export function copyFolder(directory: string): string {
  return join(directory, 'copy')
}

/** Whether a data directory has a database. */
export function hasCluster(directory: string): boolean {
  return existsSync(clusterFolder(directory))
}
