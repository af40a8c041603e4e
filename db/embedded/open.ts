import type { Duplex } from 'node:stream'
import { ensureCluster } from './cluster.ts'
import { createConnections } from './connection.ts'
import { compileEngine, createCluster, startEngine, type Space } from './engine.ts'
import { lockDirectory } from './lock.ts'

/** How to open the embedded database. */
export interface EmbeddedOptions {
  /** The data directory; it is created when missing and holds `lock` and the cluster `pg/`. */
  directory: string
  /** Called when the disk gets too full for changes, and when it has space again. */
  onSpace?: (space: Space) => void
}

/** An open embedded database. */
export interface EmbeddedEngine {
  /** A new connection, which ends the one before: the `socket` option of `postgres()`. */
  socket: () => Duplex
  /** Settles with the reason when PostgreSQL has died unasked; the connection has ended then. */
  failed: Promise<Error>
  /**
   * Finishes the running statement, rolls back an open transaction, shuts PostgreSQL down and frees
   * the directory. Calling it again returns the same promise.
   */
  close: () => Promise<void>
}

/**
 * Opens the embedded database of a data directory, with every commit on the disk before it is
 * acknowledged. It is created at the first opening and recovers from a crash by itself.
 *
 * @throws EmbeddedLockedError when the directory is in use; Error with one line when it is unusable.
 */
export async function openEmbedded({
  directory,
  onSpace,
}: EmbeddedOptions): Promise<EmbeddedEngine> {
  const lock = lockDirectory(directory)
  try {
    const wasm = await compileEngine()
    const cluster = await ensureCluster(directory, (path) => createCluster(path, wasm))
    const engine = await startEngine(cluster, wasm, onSpace)
    const connections = createConnections(engine.greeting, engine.run)
    let dead: Error | undefined
    const failed = engine.failed.then(async (error) => {
      dead = error
      await connections.close(error)
      return error
    })
    const shutDown = async (): Promise<void> => {
      try {
        await connections.close()
        if (dead === undefined) await engine.close()
      } finally {
        lock.release()
      }
    }
    let closing: Promise<void> | undefined
    return {
      socket() {
        // A socket that ends before the client listens to it would end the whole process.
        if (dead !== undefined) throw dead
        if (closing !== undefined) throw new Error('the embedded database is closed')
        return connections.connect()
      },
      failed,
      close: () => (closing ??= shutDown()),
    }
  } catch (error) {
    lock.release()
    throw error
  }
}
