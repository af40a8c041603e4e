import { firstUnknown, migrate } from '../db/migrate.ts'
import { verifyBackup, type Contents } from '../db/transfer/backup-file.ts'
import { openBackupSource } from '../db/transfer/source.ts'
import { load, NotEmpty, type Loaded, type Progress, inspectTarget } from '../db/transfer/load.ts'
import type { Database } from '../db/client.ts'
import type { ConfigSource } from '../kernel/config.ts'
import type { Log } from '../kernel/log.ts'
import { readFlags } from './action-arguments.ts'
import { DONE, UsageError, type Output } from './command.ts'
import { openStopped } from './stopped-database.ts'
import { openMeter, reportTables } from './transfer-report.ts'

export const RESTORE_USAGE = 'gatehouse restore FILE [--json]'

/** Reads the arguments; throws `UsageError` for those that are wrong. */
function parseRestore(args: readonly string[]): {
  readonly file: string
  readonly json: boolean
} {
  const { positionals, flags } = readFlags(args, { json: { type: 'boolean' } } as const)
  const [file = '', ...rest] = positionals
  if (file === '') throw new UsageError('Missing FILE')
  if (rest.length > 0) throw new UsageError('Too many arguments')
  return { file, json: flags.json === true }
}

/**
 * `gatehouse restore FILE`: a backup into an empty database, at the migrations that it was made at and
 * then up to this program's. Every byte of the file is verified before anything is changed.
 */
export async function runRestore(
  args: readonly string[],
  { config, log }: { readonly config: ConfigSource; readonly log: Log },
  output: Output,
): Promise<number> {
  const { file, json } = parseRestore(args)
  const contents = await verifyBackup(file)
  const { version, made_at, migrations } = contents
  const unknown = firstUnknown(migrations)
  if (unknown !== undefined) {
    throw new Error(
      `${file} was made by version ${version} with the migration ${unknown.name}, which this program does not have: restore it with that version or a newer one`,
    )
  }
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
    return DONE
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
}

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
