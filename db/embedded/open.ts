import { messageOf } from '../../kernel/log.ts'
import { ensureCluster } from './cluster.ts'
import { createConnections } from './connection.ts'
import { compileEngine, createCluster, startEngine, type EngineEvents } from './engine.ts'
import fs from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** An open embedded database. */
export type EmbeddedEngine = Awaited<ReturnType<typeof openEmbedded>>

/**
 * Opens the embedded database of a data directory, with every commit on the disk before it is
 * acknowledged. At the first opening the directory and its content are created: `lock` and the
 * cluster `pg/`. The database recovers from a crash by itself.
 *
 * @throws EmbeddedLockedError when the directory is in use; Error with one line when it is
 * unusable.
 */
export async function openEmbedded(directory: string, events: Partial<EngineEvents> = {}) {
  using opened = new DisposableStack()
  opened.use(lockDirectory(directory))
  const cluster = await ensureCluster(directory, createCluster)
  const engine = await startEngine(cluster, await compileEngine('shared'), events)
  const connections = createConnections(engine.greeting, engine.run)
  let dead: Error | undefined
  const failed = engine.failed.then(async (error) => {
    dead = error
    await connections.close(error)
    return error
  })
  const held = opened.move()
  async function shutDown(): Promise<void> {
    using _lock = held
    await connections.close()
    if (dead === undefined) await engine.close()
  }
  let closing: Promise<void> | undefined
  return {
    /** Opens a connection and ends the previous one: the `socket` option of `postgres()`. */
    socket() {
      // A socket that ends before the client listens to it would end the whole process.
      if (dead !== undefined) throw dead
      if (closing !== undefined) throw new Error('the embedded database is closed')
      return connections.connect()
    },
    cancel: engine.cancel,
    /** Settles with the reason when PostgreSQL has died unasked; the connection has ended then. */
    failed,
    /**
     * Finishes the running statement, rolls back an open transaction, shuts PostgreSQL down and
     * frees the directory. Calling it again returns the same promise.
     */
    close: () => (closing ??= shutDown()),
  }
}

const SQLITE_BUSY = 5

/** The data directory is in use: `message` is one line for the operator. */
export class EmbeddedLockedError extends Error {
  override readonly name = 'EmbeddedLockedError'
}

/**
 * Takes the exclusive lock on a data directory, which is created (mode 0700) when it is missing.
 *
 * The lock is an open SQLite transaction on `<directory>/lock`: the kernel drops it with the
 * process, even on kill -9, and processes in different containers see it too. Nothing else in this
 * process may open and close that file, because POSIX drops a process's locks at any close.
 *
 * @throws EmbeddedLockedError when it is held, here or in another process; Error with one clear
 * line when the directory cannot be used.
 */
export function lockDirectory(directory: string): Disposable {
  const file = path.join(directory, 'lock')
  let database: DatabaseSync | undefined
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
    // SQLite would fall back to a read-only open, which locks nothing.
    fs.accessSync(directory, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
    database = new DatabaseSync(file)
    // Nothing is ever written, so no journal is needed beside the file.
    database.exec('pragma journal_mode=memory; pragma locking_mode=exclusive; begin exclusive')
    return database
  } catch (error) {
    database?.close()
    const isBusy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
    if (isBusy) {
      throw new EmbeddedLockedError(
        `data directory ${directory} is held by another process: ` +
          'stop that process, or set GATEHOUSE_DATA_DIR or DATABASE_URL',
      )
    }
    const message = `cannot use the data directory ${directory}: ${messageOf(error)}`
    throw new Error(message, { cause: error })
  }
}
