import { EmbeddedLockedError } from '../../db/embedded/open.ts'
import { openDatabase } from '../../db/open.ts'
import {
  type Progress,
  load,
  NotEmpty,
  type Loaded,
  inspectTarget,
} from '../../db/transfer/load.ts'
import {
  type TableContents,
  openBackupSources,
  openDatabaseSources,
} from '../../db/transfer/source.ts'
import { type Log, messageOf } from '../../kernel/log.ts'
import type { ConfigSource } from '../frame/configuration.ts'
import { printRows, type Output } from '../frame/output.ts'
import { firstUnknown, migrate, migrationState } from '../../db/migrate.ts'
import { verifyBackup, type Contents } from '../../db/transfer/backup-file.ts'
import { type Database, openClient } from '../../db/client.ts'
import {
  command,
  JSON_FLAG,
  text,
  UsageError,
  urlFlag,
  type ConfiguredTools,
} from '../frame/command.ts'
import { keyFile, placeOfKey } from './secret-key.ts'
import { configuredSecrets } from '../../services/hooks/receive/schemes/configured-secrets.ts'
import { describeUnreadable } from '../../services/secret-key.ts'
import { QueryError } from '../../db/errors.ts'
import { hasCluster } from '../../db/embedded/cluster.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { databaseUrl } from '../../kernel/variables.ts'

const EVERY_MS = 200

/** Shows the progress in one line of the terminal, if stderr is one; it goes at the end. */
export function openMeter() {
  const { stderr } = process
  let current = ''
  let rows = 0
  let shownAt = 0
  const progress: Progress = (doing, name, count) => {
    const what = `${doing} ${name}`
    rows = what === current ? rows + count : count
    current = what
    if (!stderr.isTTY || performance.now() - shownAt < EVERY_MS) return
    shownAt = performance.now()
    stderr.write(`\r\u001B[K${what}: ${rows} rows`)
  }
  return {
    progress,
    [Symbol.dispose]() {
      if (stderr.isTTY) stderr.write('\r\u001B[K')
    },
  }
}

/** Prints the rows of each table, or everything as one object of JSON. */
export function reportTables(
  tables: readonly TableContents[],
  more: Readonly<Record<string, unknown>>,
  json: boolean,
  output: Output,
): void {
  if (json) output.out(JSON.stringify({ ...more, tables }))
  else {
    const sorted = tables.toSorted((one, other) => (one.name < other.name ? -1 : 1))
    printRows(output, false, sorted, {
      TABLE: ({ name }) => name,
      ROWS: ({ rows }) => String(rows),
      'SHA-256': ({ sha256 }) => sha256.slice(0, 16),
    })
  }
}

/** One statement may carry a payload of 100 MiB over a slow line. */
export const TRANSFER_DEADLINE_MS = 120_000

/**
 * Does work on the configured database that no server may run beside. `problemOf` says in a line
 * what went wrong; undefined for errors that say it themselves.
 */
async function alone<T>(
  { config, log }: ConfiguredTools,
  command: string,
  problemOf: (error: unknown) => string | undefined,
  work: (db: Database, progress: Progress) => Promise<T>,
): Promise<T> {
  await using database = await openStopped(config, log, command)
  using meter = openMeter()
  try {
    return await work(database.db, meter.progress)
  } catch (error) {
    const problem = problemOf(error)
    throw problem === undefined ? error : new Error(problem, { cause: error })
  }
}

async function openStopped({ current }: ConfigSource, log: Log, command: string) {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = current
  try {
    return await openDatabase({ url, dataDirectory, deadlineMs: TRANSFER_DEADLINE_MS }, log)
  } catch (error) {
    if (!(error instanceof EmbeddedLockedError)) throw error
    const others = `stop the server, or whatever else uses ${dataDirectory}`
    const problem = `"${command}" has the database to itself: ${others}, and try again`
    throw new Error(problem, { cause: error })
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
    async run({ args: { file }, flags: { json } }, tools) {
      const { output } = tools
      const contents = await verifyBackup(file)
      refuseUnknownMigration(file, contents)
      const { made_at } = contents
      const work = async (db: Database, progress: Progress) => {
        const loaded = await restore(db, file, contents, tools.config, progress)
        const migrated = await migrate(db)
        const unreadable = await describeUnreadable(db, boxOf(tools))
        return { ...loaded, migrated, unreadable }
      }
      const problemOf = (error: unknown) => restoreProblem(error, tools.config)
      const restored = await alone(tools, 'restore', problemOf, work)
      const { tables, wasThere, migrated, unreadable } = restored
      reportTables(tables, { made_at, was_there: wasThere, migrated, unreadable }, json, output)
      for (const name of migrated) output.err(`applied ${name}`)
      const done = wasThere ? 'is what the database has already' : 'restored and verified'
      output.err(`${file} of ${made_at} ${done}`)
      if (unreadable !== '') output.err(unreadableText(unreadable, tools.config))
    },
  }),
  command({
    name: 'db move',
    summary: 'copy the embedded database to an empty one of a PostgreSQL server',
    flags: {
      to: urlFlag('URL|-', 'the database; - reads it from standard input', databaseUrl),
      json: JSON_FLAG,
    },
    needs: 'configuration',
    check({ flags: { to } }) {
      if (to !== undefined) return
      throw new UsageError('Missing --to URL; - reads it from standard input')
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
      const key = placeOfKey(tools.config)
      if (key === undefined) return
      tools.output.err(`secrets need the same key: keep ${key}, or set GATEHOUSE_SECRET_KEY to it`)
    },
  }),
]

/** The key of this start; undefined before the first start. */
function boxOf({ config, random }: ConfiguredTools) {
  return configuredSecrets(config, random).box()
}

function unreadableText(unreadable: string, config: ConfigSource) {
  const places = `${keyFile(config)} or in GATEHOUSE_SECRET_KEY`
  return `secrets of ${unreadable} need the key of the backup's server: put it in ${places}`
}

function refuseUnknownMigration(file: string, { version, migrations }: Contents) {
  const unknown = firstUnknown(migrations)
  if (unknown === undefined) return
  throw new Error(
    `${file} was made by version ${version} with the migration ${unknown.name}, ` +
      'which this program does not have: restore it with that version or a newer one',
  )
}

function restoreProblem(error: unknown, config: ConfigSource): string | undefined {
  if (!(error instanceof NotEmpty)) return undefined
  const problem = `a backup is restored into an empty database, but ${error.message}`
  return `${problem}: ${wayToAnEmptyDatabase(config)}; nothing was changed`
}

function wayToAnEmptyDatabase({ current }: ConfigSource): string {
  if (current.DATABASE_URL !== undefined) return 'name an empty database in DATABASE_URL'
  return 'set GATEHOUSE_DATA_DIR to a new folder, or move "pg" out of this one'
}

/** Loads the backup at the migrations that it was made at. */
async function restore(
  db: Database,
  file: string,
  contents: Contents,
  config: ConfigSource,
  progress: Progress,
): Promise<Loaded> {
  const level = contents.migrations.length
  const applied = await inspectTarget(db, level)
  if (applied > level) {
    throw new Error(
      'the database was made by a newer version than the backup ' +
        `(migration ${applied} and ${level}): ` +
        `${wayToAnEmptyDatabase(config)}; nothing was changed`,
    )
  }
  await migrate(db, level)
  return db.transaction((tx) => load(tx, openBackupSources(file, contents), progress))
}

/** The data directory; throws when the embedded database is not the one in use. */
function embeddedDirectory({ current }: ConfigSource) {
  const { DATABASE_URL: present, GATEHOUSE_DATA_DIR: directory } = current
  if (present !== undefined) {
    throw new Error('DATABASE_URL is set: unset it to move the embedded database to a server')
  }
  if (!hasCluster(directory)) {
    throw new Error(`there is no database in ${directory}: nothing to move`)
  }
  return directory
}

async function moveTo(url: string, tools: ConfiguredTools): Promise<Loaded> {
  // Opened before the source: it throws for an unknown setting in the URL.
  const target = openClient({ target: url, deadlineMs: TRANSFER_DEADLINE_MS, connections: 2 })
  await using ending = new AsyncDisposableStack()
  ending.defer(() => target.close())
  return await alone(tools, 'db move', moveProblem, (db, progress) => move(db, target, progress))
}

async function move(source: Database, target: Database, progress: Progress): Promise<Loaded> {
  await migrate(source)
  // Before the target is migrated: one that is refused stays as it is.
  const { applied } = await migrationState(source)
  await inspectTarget(target, applied.length)
  await migrate(target)
  return source.transaction(async (from) => {
    const sources = await openDatabaseSources(from)
    return target.transaction((tx) => load(tx, sources, progress))
  })
}

/** What went wrong at the server. */
function moveProblem(error: unknown): string | undefined {
  if (error instanceof NotEmpty) {
    const problem = `the server's database must be empty, but ${error.message}`
    return `${problem}: give another one; nothing was changed`
  }
  const why = error instanceof Error ? messageOf(error.cause ?? error) : ''
  if (error instanceof Unavailable) {
    return `the server can't be reached (${why}); try again: nothing was moved`
  }
  return error instanceof QueryError ? `the server refuses (${why}); nothing was moved` : undefined
}
