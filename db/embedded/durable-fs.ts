import fs from 'node:fs'
import type { PGlite, postgresMod } from '@electric-sql/pglite'
import { NodeFS } from '@electric-sql/pglite/nodefs'
import { syncPath } from '../disk.ts'
import type { WasmMemory } from './shared-memory.ts'

// The parts of Emscripten's file system that are used here; its types are not published.
interface Stream {
  nfd?: number
  node: unknown
  path?: string
}
interface NodeMount {
  realPath: (node: unknown) => string
  node_ops: { mknod: (parent: unknown, name: string, ...rest: unknown[]) => unknown }
  stream_ops: {
    fsync?: (stream: Stream) => number
    write: (stream: Stream, ...rest: unknown[]) => number
  }
}
type PostgresMod = postgresMod.PostgresMod
interface Mod {
  NODEFS: NodeMount
  FS: {
    ErrnoError: new (errno: number) => Error
    lookupNode: (parent: unknown, name: string) => unknown
    destroyNode: (node: unknown) => void
  }
}

const EIO = 29
const SEGMENT = /\/pg_wal\/[0-9A-F]{24}$/

/**
 * PGlite's file system on a directory, with the fsync that PGlite's own lacks: a commit is on the
 * disk when PostgreSQL says so. It needs `wal_sync_method=fsync`: the engine's fdatasync is
 * compiled to nothing.
 */
export class DurableFS extends NodeFS {
  /** Write-ahead log segments (16 MB each) begun since this was last set to 0. */
  segmentsBegun = 0
  #memory

  /** The engine gets its memory here, too: PGlite has no other place for that. */
  constructor(directory: string, memory: WasmMemory) {
    super(directory)
    this.#memory = memory
  }

  override async init(
    pg: PGlite,
    options: Partial<PostgresMod>,
  ): Promise<{ emscriptenOpts: Partial<PostgresMod> }> {
    const { emscriptenOpts } = await super.init(pg, options)
    const install = (mod: PostgresMod): void => this.#install(mod as unknown as Mod)
    const preRun = [...(emscriptenOpts.preRun ?? []), install]
    const wasmMemory = this.#memory as unknown as PostgresMod['wasmMemory']
    return { emscriptenOpts: { ...emscriptenOpts, preRun, wasmMemory } }
  }

  #install(mod: Mod): void {
    const { NODEFS, FS } = mod
    NODEFS.stream_ops.fsync = (stream) => {
      try {
        // PostgreSQL relies on data and size, which fdatasync writes without the times.
        if (stream.nfd === undefined) syncPath(NODEFS.realPath(stream.node))
        else fs.fdatasyncSync(stream.nfd)
        return 0
      } catch {
        // PostgreSQL panics when fsync fails, which is right: pages may be lost.
        throw new FS.ErrnoError(EIO)
      }
    }
    const { mknod } = NODEFS.node_ops
    NODEFS.node_ops.mknod = (parent, name, ...rest) => {
      try {
        return mknod(parent, name, ...rest)
      } catch (error) {
        // There was no descriptor or inode for the file: else PostgreSQL would see it until the
        // next start.
        FS.destroyNode(FS.lookupNode(parent, name))
        throw error
      }
    }
    const write = NODEFS.stream_ops.write
    let segment = ''
    NODEFS.stream_ops.write = (stream, ...rest) => {
      const { path: file = '' } = stream
      if (file > segment && SEGMENT.test(file)) {
        segment = file
        this.segmentsBegun++
      }
      return write(stream, ...rest)
    }
  }
}
