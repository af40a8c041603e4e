import { EmbeddedLockedError } from '../db/embedded/open.ts'
import { openDatabase, type OpenedDatabase } from '../db/open.ts'
import { type Progress, load, NotEmpty, type Loaded, inspectTarget } from '../db/transfer/load.ts'
import { type TableContents, openBackupSource, openDatabaseSource } from '../db/transfer/source.ts'
import { type Log, messageOf } from '../kernel/log.ts'
import type { ConfigSource } from './configuration.ts'
import { table, type Output } from './output.ts'
import { firstUnknown, migrate, migrationState } from '../db/migrate.ts'
import { verifyBackup, type Contents } from '../db/transfer/backup-file.ts'
import { type Database, openClient } from '../db/client.ts'
import { command, JSON_FLAG, text, UsageError, value, type ConfiguredTools } from './command.ts'
import { QueryError } from '../db/errors.ts'
import { hasCluster } from '../db/embedded/cluster.ts'
import { Unavailable } from '../kernel/fault.ts'
import { databaseUrl } from '../kernel/variables.ts'

const EVERY_MS = 200

/** Shows the progress in one line of the terminal, if stderr is one; `end` removes the line. */
export function openMeter(): { readonly progress: Progress; readonly end: () => void } {
  const { stderr } = process
  if (!stderr.isTTY) return { progress: () => undefined, end: () => undefined }
  let [current, rows, shownAt] = ['', 0, 0]
  return {
    progress(doing, name, count) {
      const what = `${doing} ${name}`
      rows = what === current ? rows + count : count
      current = what
      if (performance.now() - shownAt < EVERY_MS) return
      shownAt = performance.now()
      stderr.write(`\r\u001B[K${what}: ${rows} rows`)
    },
    end: () => void stderr.write('\r\u001B[K'),
  }
}

/** Prints the rows of each table, or everything as one object of JSON. */
export function reportTables(
  tables: readonly TableContents[],
  more: Readonly<Record<string, unknown>>,
  json: boolean,
  output: Output,
): void {
  if (json) {
    output.out(JSON.stringify({ ...more, tables }))
    return
  }
  const rows = tables
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ name, rows: count, sha256 }) => [name, String(count), sha256.slice(0, 16)])
  for (const line of table(['TABLE', 'ROWS', 'SHA-256'], rows)) output.out(line)
}

/** One statement may carry a payload of 100 MiB over a slow line. */
export const TRANSFER_DEADLINE_MS = 120_000

/** Opens the configured database for a command that no server may run beside. */
export async function openStopped(
  { current }: ConfigSource,
  log: Log,
  command: string,
): Promise<OpenedDatabase> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = current
  try {
    return await openDatabase({ url, dataDirectory, deadlineMs: TRANSFER_DEADLINE_MS }, log)
  } catch (error) {
    if (!(error instanceof EmbeddedLockedError)) throw error
    throw new Error(
      `"${command}" has the database to itself: stop the server, or whatever else uses ${dataDirectory}, and try again`,
      { cause: error },
    )
  }
}

/**
 * It copies in one transaction of the server, which ends when every table was read again and
 * compared.
 */
export const commands = [
  command({
    name: 'restore',
    summary: 'put a backup into an empty database',
    args: { file: text('FILE', 'the backup') },
    flags: { json: JSON_FLAG },
    needs: 'configuration',
    // Every byte of the file is verified before anything is changed.
    async run({ args: { file }, flags: { json } }, { config, log, output }) {
      const contents = await verifyBackup(file)
      refuseUnknownMigration(file, contents)
      const { made_at } = contents
      const meter = openMeter()
      const database = await openStopped(config, log, 'restore')
      try {
        const { wasThere, tables } = await restore(database.db, file, contents, meter.progress)
        meter.end()
        const applied = await migrate(database.db)
        reportTables(tables, { made_at, was_there: wasThere, migrated: applied }, json, output)
        for (const name of applied) output.err(`applied ${name}`)
        const done = wasThere ? 'is what the database has already' : 'restored and verified'
        output.err(`${file} of ${made_at} ${done}`)
      } catch (error) {
        if (!(error instanceof NotEmpty)) throw error
        throw new Error(
          `a backup is restored into an empty database, but ${error.message}: set GATEHOUSE_DATA_DIR to a new folder, or move "pg" out of this one; nothing was changed`,
          { cause: error },
        )
      } finally {
        meter.end()
        await database.close()
      }
    },
  }),
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
    },
  }),
]

function refuseUnknownMigration(file: string, { version, migrations }: Contents): void {
  const unknown = firstUnknown(migrations)
  if (unknown === undefined) return
  throw new Error(
    `${file} was made by version ${version} with the migration ${unknown.name}, which this program does not have: restore it with that version or a newer one`,
  )
}

/** Loads the backup at the migrations that it was made at. */
async function restore(
  db: Database,
  file: string,
  contents: Contents,
  progress: Progress,
): Promise<Loaded> {
  const level = contents.migrations.length
  const applied = await inspectTarget(db, level)
  if (applied > level) {
    throw new Error(
      `the database was made by a newer version than the backup (migration ${applied} and ${level}): set GATEHOUSE_DATA_DIR to a new folder; nothing was changed`,
    )
  }
  await migrate(db, level)
  return db.transaction((tx) => load(tx, openBackupSource(file, contents), progress))
}

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
    const problem = problemOf(error)
    throw problem === undefined ? error : new Error(problem, { cause: error })
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

/** One line of what went wrong at the server; undefined for errors that say it themselves. */
function problemOf(error: unknown): string | undefined {
  const why = error instanceof Error ? messageOf(error.cause ?? error) : ''
  if (error instanceof NotEmpty)
    return `the server's database must be empty, but ${error.message}: give another one; nothing was changed`
  if (error instanceof Unavailable)
    return `the server can't be reached (${why}); try again: nothing was moved`
  return error instanceof QueryError ? `the server refuses (${why}); nothing was moved` : undefined
}
