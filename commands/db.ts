import { openClient, type Database } from '../db/client.ts'
import { QueryError } from '../db/errors.ts'
import { hasCluster } from '../db/embedded/cluster.ts'
import { migrate, migrationState } from '../db/migrate.ts'
import { openDatabaseSource } from '../db/transfer/source.ts'
import { load, NotEmpty, type Loaded, type Progress, inspectTarget } from '../db/transfer/load.ts'
import type { ConfigSource } from '../kernel/config.ts'
import { Unavailable } from '../kernel/fault.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { parseDatabaseUrl } from '../kernel/variable-readings.ts'
import { parseAction } from './action-arguments.ts'
import { DONE, UsageError, type Output } from './command.ts'
import { openStopped, TRANSFER_DEADLINE_MS } from './stopped-database.ts'
import { openMeter, reportTables } from './transfer-report.ts'

export const DB_USAGE = 'gatehouse db move --to URL|- [--json]'

export interface DbTools {
  readonly config: ConfigSource
  readonly log: Log
  readonly readInput: () => Promise<string>
}

const ARGUMENTS = {
  command: 'db',
  flags: { to: { type: 'string' }, json: { type: 'boolean' } },
  takes: { move: ['to', 'json'] },
  words: { move: [] },
} as const

/** Reads the arguments; throws `UsageError` for those that are wrong. */
function parseDb(args: readonly string[]): { readonly to: string; readonly json: boolean } {
  const { flags } = parseAction(args, ARGUMENTS)
  if (flags.to === undefined)
    throw new UsageError('Missing --to URL; - reads it from standard input')
  return { to: flags.to, json: flags.json === true }
}

/**
 * `gatehouse db move --to URL`: copies the embedded database to a server, in one transaction of the
 * server that ends when every table was read again and compared.
 */
export async function runDb(
  args: readonly string[],
  { config, log, readInput }: DbTools,
  output: Output,
): Promise<number> {
  const { to, json } = parseDb(args)
  const url = readUrl(to === '-' ? (await readInput()).trim() : to)
  const { DATABASE_URL: present, GATEHOUSE_DATA_DIR: directory } = config.current
  if (present !== undefined) {
    throw new Error('DATABASE_URL is set: unset it to move the embedded database to a server')
  }
  if (!hasCluster(directory)) {
    throw new Error(`there is no database in ${directory}: nothing to move`)
  }
  const meter = openMeter()
  // Before the source, which nobody would close: it throws at a setting in the URL that there is not.
  const target = openClient({ target: url, deadlineMs: TRANSFER_DEADLINE_MS, connections: 2 })
  const database = await openStopped(config, log, 'db move')
  let moved: Loaded
  try {
    moved = await move(database.db, target, meter.progress)
  } catch (error) {
    throw explained(error)
  } finally {
    meter.end()
    await Promise.all([target.close(), database.close()])
  }
  reportTables(moved.tables, { was_there: moved.wasThere }, json, output)
  const done = moved.wasThere ? 'was there already, the same in every row' : 'copied and verified'
  output.err(`${done}; now set DATABASE_URL to that server and start it`)
  output.err(`${directory} is kept as it was: remove "pg" in it when you no longer need it`)
  return DONE
}

async function move(source: Database, target: Database, progress: Progress): Promise<Loaded> {
  await migrate(source)
  // Before the target is migrated: one that is refused stays as it is.
  const { applied } = await migrationState(source)
  await inspectTarget(target, applied.length)
  await migrate(target)
  return source.transaction(async (from) => {
    const rows = await openDatabaseSource(from)
    return target.transaction((tx) => load(tx, rows, progress))
  })
}

/** One line of what went wrong at the server. */
function explained(error: unknown): unknown {
  const why = error instanceof Error ? messageOf(error.cause ?? error) : ''
  if (error instanceof NotEmpty) {
    return new Error(
      `the server's database must be empty, but ${error.message}: give another one; nothing was changed`,
      { cause: error },
    )
  }
  if (error instanceof Unavailable) {
    return new Error(`the server can't be reached (${why}); try again: nothing was moved`, {
      cause: error,
    })
  }
  if (error instanceof QueryError) {
    return new Error(`the server refuses (${why}); nothing was moved`, { cause: error })
  }
  return error
}

function readUrl(text: string): string {
  try {
    return parseDatabaseUrl(text)
  } catch (error) {
    throw new UsageError(`--to must be a postgres:// URL: ${messageOf(error)}`)
  }
}
