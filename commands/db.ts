import { openClient, type Database } from '../db/client.ts'
import { QueryError } from '../db/errors.ts'
import { hasCluster } from '../db/embedded/cluster.ts'
import { migrate, migrationState } from '../db/migrate.ts'
import { openDatabaseSource } from '../db/transfer/source.ts'
import { load, NotEmpty, type Loaded, type Progress, inspectTarget } from '../db/transfer/load.ts'
import { Unavailable } from '../kernel/fault.ts'
import { messageOf } from '../kernel/log.ts'
import { databaseUrl } from '../kernel/variables.ts'
import { command, JSON_FLAG, UsageError, value, type ConfiguredTools } from './command.ts'
import type { ConfigSource } from './configuration.ts'
import { DONE } from './output.ts'
import { openStopped, TRANSFER_DEADLINE_MS, openMeter, reportTables } from './transfer.ts'

/** It copies in one transaction of the server, which ends when every table was read again and compared. */
export const commands = [
  command({
    name: 'db move',
    summary: 'copy the embedded database to an empty one of a PostgreSQL server',
    flags: {
      to: {
        ...value('URL|-', 'the database; - reads it from standard input', databaseUrl),
        fromInput: true,
      },
      json: JSON_FLAG,
    },
    needs: 'configuration',
    check({ flags: { to } }) {
      if (to === undefined) throw new UsageError('Missing --to URL; - reads it from standard input')
    },
    async run({ flags: { to: target = '', json } }, tools) {
      const directory = embeddedDirectory(tools.config)
      const { tables, wasThere } = await moveTo(target, tools)
      reportTables(tables, { was_there: wasThere }, json, tools.output)
      const done = wasThere ? 'was there already, the same in every row' : 'copied and verified'
      tools.output.err(`${done}; now set DATABASE_URL to that server and start it`)
      tools.output.err(
        `${directory} is kept as it was: remove "pg" in it when you no longer need it`,
      )
      return DONE
    },
  }),
]

/** The data directory; throws when the embedded database is not the one in use. */
function embeddedDirectory({ current }: ConfigSource): string {
  const { DATABASE_URL: present, GATEHOUSE_DATA_DIR: directory } = current
  if (present !== undefined) {
    throw new Error('DATABASE_URL is set: unset it to move the embedded database to a server')
  }
  if (!hasCluster(directory)) {
    throw new Error(`there is no database in ${directory}: nothing to move`)
  }
  return directory
}

async function moveTo(url: string, { config, log }: ConfiguredTools): Promise<Loaded> {
  const meter = openMeter()
  // Opened before the source: it throws for an unknown setting in the URL.
  const target = openClient({ target: url, deadlineMs: TRANSFER_DEADLINE_MS, connections: 2 })
  const database = await openStopped(config, log, 'db move')
  try {
    return await move(database.db, target, meter.progress)
  } catch (error) {
    throw explained(error)
  } finally {
    meter.end()
    await Promise.all([target.close(), database.close()])
  }
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
