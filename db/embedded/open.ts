import type { Duplex } from 'node:stream'
import type { Level } from '../levels.ts'
import { ensureCluster } from './cluster.ts'
import { createConnection } from './connection.ts'
import { compileEngine, createCluster, startEngine } from './engine.ts'
import type { Space } from './engine.ts'
import { lockDirectory } from './lock.ts'
import { createSession } from './session.ts'

/** How to open the embedded database. */
export interface EmbeddedOptions {
  /** The data directory; it is created when missing and holds `lock` and the cluster `pg/`. */
  directory: string
  /** How long a connection waits while another one holds the database; 30,000 ms by default. */
  turnTimeoutMs?: number
  /** Told when the disk gets too full for changes, and when it has room again. */
  onSpace?: (space: Space) => void
}

/** An open embedded database. */
export interface EmbeddedEngine {
  /** A new connection: the `socket` option of `postgres()`. */
  socket: () => Duplex
  /** A new connection whose statements run for a level. */
  socketAt: (level: Level) => Duplex
  /** Settles with the reason when PostgreSQL has died unasked; every connection has ended then. */
  failed: Promise<Error>
  /**
   * Finishes the running statement, rolls back open transactions, shuts PostgreSQL down and frees
   * the directory. Calling it again returns the same promise.
   */
  close: () => Promise<void>
}

/**
 * Opens the embedded database of a data directory, with every commit on the disk before it is
 * acknowledged. It is created at the first opening and recovers from a crash by itself.
 *
 * @throws EmbeddedLockedError when the directory is in use; Error with one clear line when it is
 * not usable.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedEngine> {
  const { directory, turnTimeoutMs = 30_000, onSpace } = options
  const lock = lockDirectory(directory)
  try {
    const wasm = await compileEngine()
    const cluster = await ensureCluster(directory, (path) => createCluster(path, wasm))
    const engine = await startEngine(cluster, wasm, onSpace)
    const session = createSession(engine.run, turnTimeoutMs)
    let dead: Error | undefined
    const failed = engine.failed.then(async (error) => {
      dead = error
      await session.close(error)
      return error
    })
    const shutDown = async (): Promise<void> => {
      try {
        await session.close()
        if (dead === undefined) await engine.close()
      } finally {
        lock.release()
      }
    }
    const socketAt = (level: Level): Duplex => {
      // A socket that ends before the client listens to it would end the whole process.
      if (dead !== undefined) throw dead
      return createConnection(session, engine.greeting, level)
    }
    let closing: Promise<void> | undefined
    return {
      socket: () => socketAt('trusted'),
      socketAt,
      failed,
      close: () => (closing ??= shutDown()),
    }
  } catch (error) {
    lock.release()
    throw error
  }
}
