import { dirname } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { PGlite } from '@electric-sql/pglite'
import { asset } from '../../kernel/assets.ts'
import { withSharedMemory } from './shared-memory.ts'

// Libraries of the engine, in its own file system. PostgreSQL loads one at the first call of one
// of its functions.

/** The program's files in the engine's file system. */
const PREFIX = '/pglite'
const PLPGSQL = `${PREFIX}/lib/postgresql/plpgsql.so`
/** A tar file of the package: PGlite's own loader reads it only from the disk. */
const PG_TRGM = 'pglite/pg_trgm.tar.gz'

/** Adds pg_trgm, and makes its library and that of PL/pgSQL fit the engine's memory. */
export function addLibraries({ Module: { FS } }: PGlite): void {
  FS.writeFile(PLPGSQL, withSharedMemory(FS.readFile(PLPGSQL)))
  for (const { name, bytes } of filesOfTar(gunzipSync(asset(PG_TRGM)))) {
    const path = `${PREFIX}/${name}`
    FS.mkdirTree(dirname(path))
    FS.writeFile(path, name.endsWith('.so') ? withSharedMemory(bytes) : bytes)
  }
}

const TAR_BLOCK = 512

/** The files of a tar file: blocks of a header with name and size, each followed by its content. */
function filesOfTar(tar: Buffer) {
  const files: { name: string; bytes: Buffer }[] = []
  for (let at = 0; at < tar.length;) {
    const [name = ''] = tar.toString('latin1', at, at + 100).split('\0')
    // Empty blocks follow the last file.
    if (name === '') break
    const size = Number.parseInt(tar.toString('latin1', at + 124, at + 136), 8)
    const start = at + TAR_BLOCK
    files.push({ name, bytes: tar.subarray(start, start + size) })
    at = start + Math.ceil(size / TAR_BLOCK) * TAR_BLOCK
  }
  return files
}
