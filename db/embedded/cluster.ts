import fs from 'node:fs'
import path from 'node:path'
import { clusterFolder, copyFolder } from './places.ts'
import { syncPath, syncTree } from '../sync.ts'

/**
 * The path of the cluster in a (locked) data directory, which `create` makes when there is none.
 * It is made aside and renamed when all of it is on the disk, so that a cluster under its real name
 * is always whole; what an interrupted creation or a backup left is removed.
 */
export async function ensureCluster(
  directory: string,
  create: (cluster: string) => Promise<void>,
): Promise<string> {
  const cluster = clusterFolder(directory)
  const unfinished = path.join(directory, 'pg.new')
  fs.rmSync(unfinished, { recursive: true, force: true })
  fs.rmSync(copyFolder(directory), { recursive: true, force: true })
  if (fs.existsSync(cluster)) return cluster
  fs.mkdirSync(unfinished, { mode: 0o700 })
  await create(unfinished)
  syncTree(unfinished)
  fs.renameSync(unfinished, cluster)
  syncPath(directory)
  syncPath(path.dirname(path.resolve(directory)))
  return cluster
}
