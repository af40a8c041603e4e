import fs from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** The data directory is in use: `message` is one line for the operator. */
export class EmbeddedLockedError extends Error {
  override readonly name = 'EmbeddedLockedError'
}

/** An exclusive hold on a data directory. */
export interface Lock {
  /** Gives the directory back; calling it again does nothing. */
  release: () => void
}

/**
 * Takes the exclusive lock on a data directory, which is created (mode 0700) when it is missing.
 *
 * The lock is an open SQLite transaction on `<directory>/lock`: the kernel drops it with the
 * process, even on kill -9, and processes in different containers see it too. Nothing else in this
 * process may open and close that file, because POSIX drops a process's locks at any close.
 *
 * @throws EmbeddedLockedError when it is held, here or in another process; Error with one clear line
 * when the directory cannot be used.
 */
export function lockDirectory(directory: string): Lock {
  const file = path.join(directory, 'lock')
  let database: DatabaseSync | undefined
  try {
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 })
    // SQLite would fall back to a read-only open, which locks nothing.
    fs.accessSync(directory, fs.constants.R_OK | fs.constants.W_OK | fs.constants.X_OK)
    database = new DatabaseSync(file)
    // Nothing is ever written, so no journal is needed beside the file.
    database.exec('pragma journal_mode=memory; pragma locking_mode=exclusive; begin exclusive')
  } catch (error) {
    database?.close()
    if (isBusy(error)) throw new EmbeddedLockedError(lockedMessage(directory))
    throw new Error(`cannot use the data directory ${directory}: ${reason(error)}`, {
      cause: error,
    })
  }
  const held = database
  return {
    release: () => {
      if (held.isOpen) held.close()
    },
  }
}

function lockedMessage(directory: string): string {
  return (
    `data directory ${directory} is held by another process: ` +
    'stop that process, or set GATEHOUSE_DATA_DIR or DATABASE_URL'
  )
}

function isBusy(error: unknown): boolean {
  const sqliteBusy = 5
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
