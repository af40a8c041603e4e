import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { cp, mkdir, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { createZstdDecompress, zstdCompressSync } from 'node:zlib'
import { codeOf } from '../../kernel/log.ts'
import type { Database } from '../client.ts'
import { freeBytes, syncPath, syncTree } from '../disk.ts'

/**
 * The path of the cluster in a locked data directory. `create` makes a missing one under another
 * name; it is renamed once all of it is on the disk. So a cluster under its real name is complete.
 * Remains of an interrupted creation or backup are removed.
 */
export async function ensureCluster(
  directory: string,
  create: (cluster: string) => Promise<void>,
): Promise<string> {
  const cluster = clusterFolder(directory)
  for (const name of readdirSync(directory)) {
    if (name.startsWith(UNFINISHED))
      rmSync(join(directory, name), { recursive: true, force: true })
  }
  rmSync(copyFolder(directory), { recursive: true, force: true })
  if (existsSync(cluster)) return cluster
  const unfinished = mkdtempSync(join(directory, UNFINISHED))
  await create(unfinished)
  syncTree(unfinished)
  renameSync(unfinished, cluster)
  syncPath(directory)
  syncPath(dirname(resolve(directory)))
  return cluster
}

/** Prefix of the folder in which a cluster is being created; each has a name of its own. */
const UNFINISHED = 'pg.new'

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

/** A directory (`size` is null) or a file of a packed tree; paths have forward slashes. */
interface Entry {
  path: string
  size: number | null
}

/**
 * Packs a directory: the list of its entries as a line of JSON, then the bytes of its
 * files in that order, compressed. The same tree always gives the same bytes.
 */
export function packTree(directory: string): Buffer {
  const entries: Entry[] = []
  const contents: Buffer[] = []
  // A folder sorts before what is in it.
  for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const place = join(directory, path)
    const bytes = statSync(place).isFile() ? readFileSync(place) : undefined
    entries.push({ path, size: bytes?.length ?? null })
    if (bytes !== undefined) contents.push(bytes)
  }
  const list = Buffer.from(`${JSON.stringify(entries)}\n`)
  return Buffer.concat([list, zstdCompressSync(Buffer.concat(contents))])
}

/** Unpacks a tree into an empty directory, readable only by its owner. */
export async function unpackTree(packed: Buffer, directory: string): Promise<void> {
  const lineEnd = packed.indexOf('\n')
  const entries = JSON.parse(packed.toString('utf8', 0, lineEnd)) as readonly Entry[]
  // In pieces: the whole would stay in memory until some later garbage collection.
  const contents = createZstdDecompress({ chunkSize: 1 << 20 })
  contents.end(packed.subarray(lineEnd + 1))
  const pieces = contents[Symbol.asyncIterator]()
  let piece = Buffer.alloc(0)
  for (const { path: name, size } of entries) {
    const target = join(directory, name)
    if (size === null) {
      mkdirSync(target, { mode: 0o700 })
      continue
    }
    const fd = openSync(target, 'wx', 0o600)
    try {
      for (let left = size; left > 0;) {
        if (piece.length === 0) piece = (await pieces.next()).value
        const written = writeSync(fd, piece, 0, Math.min(left, piece.length))
        piece = piece.subarray(written)
        left -= written
      }
    } finally {
      closeSync(fd)
    }
  }
}

/**
 * Copies the embedded database that `db` is open on, file by file, to `copyFolder()`. All other
 * statements wait while the disk works; reading row by row would take many times as long. The copy
 * has everything that is committed.
 *
 * @returns the milliseconds that statements had to wait.
 */
export async function copyCluster(db: Database, directory: string): Promise<number> {
  const from = clusterFolder(directory)
  const copy = copyFolder(directory)
  refuseWithoutSpace(directory, from)
  await mkdir(copy, { mode: 0o700 }).catch((error: unknown) => {
    const isThere = codeOf(error) === 'EEXIST'
    throw isThere ? new Error('another backup is being made', { cause: error }) : error
  })
  await using made = new AsyncDisposableStack()
  made.defer(() => removeCopy(directory))
  const waitedMs = await db.transaction(async (tx) => {
    // While a transaction has the only connection, nothing is written. What is not yet in the
    // tables' files is in the log, which PostgreSQL reads when it opens the copy.
    await tx.script('select')
    const began = performance.now()
    await cp(from, clusterFolder(copy), { recursive: true, mode: constants.COPYFILE_FICLONE })
    return performance.now() - began
  })
  made.move()
  return waitedMs
}

/** Removes the copy. */
export async function removeCopy(directory: string): Promise<void> {
  await rm(copyFolder(directory), { recursive: true, force: true, maxRetries: 3 })
}

/** A full disk would stop the server. */
function refuseWithoutSpace(directory: string, cluster: string): void {
  const files = readdirSync(cluster, { recursive: true, encoding: 'utf8' })
  // The engine's thread goes on, and may rename or remove a listed file.
  const sizeOf = (file: string) => {
    return statSync(join(cluster, file), { throwIfNoEntry: false })?.size ?? 0
  }
  const needed = files.reduce((sum, file) => sum + sizeOf(file), 0)
  const free = freeBytes(directory)
  if (free > 1.1 * needed) return
  const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`
  throw new Error(
    `a backup beside the server needs ${mib(1.1 * needed)} for a copy in ${directory}, ` +
      `where ${mib(free)} are free`,
  )
}
